import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { readStatus } from "../../../../src/sync/operate/status.ts";
import { openFakeService, type Fault } from "../../../fakes/knowledge-service.ts";
import { openWorld, until, type World } from "../../daemon/harness.ts";

let world: World;
beforeEach(async () => {
  world = await openWorld({ collections: true });
});
afterEach(async () => {
  await world.end();
});

const answer = (status: number, message: string, headers: Record<string, string> = {}): Fault => ({
  kind: "answer",
  status,
  body: JSON.stringify({ success: false, message }),
  headers,
});
const fill = (count: number): void => {
  for (let index = 0; index < count; index += 1) world.write(`${index}.txt`, `text ${index}`);
};

describe("a service that does not answer", () => {
  it("ends one pass with a message when the service does not answer, and finishes in the next pass", async () => {
    fill(3);
    const { url } = world.service;
    await world.service.close();
    const daemon = world.daemon({ patienceMs: 0 });
    await expect(daemon.syncOnce()).rejects.toMatchObject({ code: "service_unreachable" });
    expect(daemon.status().sources[0]).toMatchObject({ failed: 0, searchable: 0, compared: false });
    await daemon.close();
    const again = await openFakeService({ port: Number(new URL(url).port), collections: true });
    await world.sync();
    expect(again.live()).toHaveLength(3);
    await again.close();
  });

  it("ends one pass when the service refuses the key, and marks nothing as failed", async () => {
    fill(3);
    const daemon = world.daemon({
      service: { apiUrl: world.service.url, dbUrl: world.service.url, pauthkey: "wrong" },
    });
    await expect(daemon.syncOnce()).rejects.toMatchObject({ code: "key_refused" });
    expect(daemon.status().sources[0]).toMatchObject({ failed: 0, searchable: 0, compared: false });
    await daemon.close();
    await world.sync();
    expect(world.service.live()).toHaveLength(3);
  });

  it("loses only time in a running daemon when the service does not answer", async () => {
    fill(30);
    let down = true;
    world.service.fault = () => (down ? { kind: "lose-request" } : undefined);
    const warnings: string[] = [];
    const daemon = world.daemon({ onWarning: (error) => warnings.push(error.message) });
    const stop = new AbortController();
    const ended = daemon.run({ signal: stop.signal });
    await until(() => warnings.length > 0);
    // One request at a time probes the service; the others wait.
    const tried = world.service.requests.length;
    expect(tried).toBeLessThan(30);
    down = false;
    await until(() => world.service.live().length === 30 && daemon.status().idle);
    expect(daemon.status().service).toEqual({ kind: "open" });
    stop.abort();
    await ended;
  });
});

describe("a service under pressure", () => {
  it("sends less to an overloaded service, and everything in the end", async () => {
    fill(100);
    let count = 0;
    world.service.fault = ({ operation }) =>
      operation === "create" && count++ % 7 === 3
        ? answer(429, "slow down", { "retry-after": "0" })
        : undefined;
    await world.sync({ settings: { concurrency: 8 } });
    expect(world.service.live()).toHaveLength(100);
    expect(world.service.resources.size).toBe(100);
  });
});

describe("stopping", () => {
  it("lets requests in flight end at a stop, and starts again without settling the rest", async () => {
    fill(300);
    const gate = Promise.withResolvers<void>();
    world.service.fault = ({ operation }) =>
      operation === "create" ? { kind: "wait", until: gate.promise } : undefined;
    // One slot is left to recent changes.
    const daemon = world.daemon({ settings: { concurrency: 5 } });
    const stop = new AbortController();
    const ended = daemon.run({ signal: stop.signal });
    await until(() => world.service.count("create") === 4);
    stop.abort();
    gate.resolve();
    await ended;
    expect(world.service.live()).toHaveLength(4);
    await world.sync();
    expect(world.service.live()).toHaveLength(300);
    expect(world.service.resources.size).toBe(300);
    // Both are from before the very first create.
    expect(world.service.count("list")).toBe(2);
  });
});

describe("status", () => {
  it("reads the status from the ledger alone while another process works", async () => {
    fill(5);
    world.write("broken.pdf", "no PDF");
    world.write("empty.txt", "");
    const gate = Promise.withResolvers<void>();
    world.service.fault = ({ body }) =>
      body?.["content"] === "text 3" ? { kind: "wait", until: gate.promise } : undefined;
    const daemon = world.daemon();
    const stop = new AbortController();
    const ended = daemon.run({ signal: stop.signal });
    const seen = (): unknown => readStatus(world.stateDir, 10)?.sources[0];
    await until(() => {
      const status = readStatus(world.stateDir, 10)?.sources[0];
      return status?.searchable === 4 && status.waiting === 1;
    });
    expect(seen()).toMatchObject({ path: world.root, ownerId: "docs-owner", files: 6, failed: 1 });
    expect(readStatus(world.stateDir, 10)?.troubled).toMatchObject([
      { path: "broken.pdf", code: "not_accepted" },
    ]);
    expect(seen()).toMatchObject({ skipped: 1 });
    expect(readStatus(world.stateDir, 10)?.skipped).toMatchObject([
      { source: world.root, path: "empty.txt", message: "the file is empty" },
    ]);
    expect(readStatus(world.stateDir, 0)?.skipped).toMatchObject([]);
    gate.resolve();
    await until(() => readStatus(world.stateDir, 10)?.sources[0]?.searchable === 5);
    stop.abort();
    await ended;
    expect(seen()).toMatchObject({ files: 6, searchable: 5, waiting: 0, failed: 1, held: 0 });
  });
});
