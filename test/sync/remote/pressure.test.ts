import { chmodSync, mkdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { readStatus } from "../../../src/sync/operator/status.ts";
import { openFakeService, type Fault } from "../../fakes/knowledge-service.ts";
import { openWorld, until, type World } from "../daemon/harness.ts";

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
    expect(daemon.troubled({ limit: 10 })).toEqual([]);
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
    expect(daemon.status().sources[0]).toMatchObject({ failed: 0, waiting: 3 });
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

  it("parks a file on which the service fails every time, and continues with the others", async () => {
    fill(10);
    world.service.fault = ({ operation, body }) =>
      operation === "create" && body?.["content"] === "text 5" ? answer(500, "poison") : undefined;
    const daemon = world.daemon();
    await daemon.syncOnce();
    expect(world.service.live()).toHaveLength(9);
    expect(daemon.troubled({ limit: 10 })).toMatchObject([
      { path: "5.txt", state: "parked", message: "poison" },
    ]);
    expect(daemon.status().sources[0]).toMatchObject({ files: 10, inAgreement: 9, waiting: 1, failed: 0 });
    await daemon.close();
    world.service.fault = () => undefined;
    await world.sync();
    expect(world.service.live()).toHaveLength(10);
    expect(world.service.resources.size).toBe(10);
  });
});

describe("one action at a time for a path", () => {
  it("sends the newest state of a path after the action in flight", async () => {
    world.write("a.txt", "one");
    const gate = Promise.withResolvers<void>();
    world.service.fault = ({ operation }) =>
      operation === "create" ? { kind: "wait", until: gate.promise } : undefined;
    const daemon = world.daemon({ settings: { settleMs: 5 } });
    const stop = new AbortController();
    const ended = daemon.run({ signal: stop.signal });
    await until(() => world.service.count("create") === 1);
    world.write("a.txt", "two!");
    await daemon.retry();
    world.write("a.txt", "three");
    gate.resolve();
    await until(() => world.service.live()[0]?.content === "three");
    expect(world.service.resources.size).toBe(1);
    stop.abort();
    await ended;
  });

  it("keeps the resource of a file that is renamed while its create is in flight", async () => {
    world.write("a.txt", "one");
    const gate = Promise.withResolvers<void>();
    world.service.fault = ({ operation }) =>
      operation === "create" ? { kind: "wait", until: gate.promise } : undefined;
    const daemon = world.daemon({ settings: { settleMs: 5 } });
    const stop = new AbortController();
    const ended = daemon.run({ signal: stop.signal });
    await until(() => world.service.count("create") === 1);
    renameSync(join(world.root, "a.txt"), join(world.root, "b.txt"));
    await daemon.retry();
    await until(() => daemon.status().sources[0]?.files === 1);
    gate.resolve();
    await until(() => world.service.live()[0]?.title === "b.txt" && daemon.status().idle);
    expect(world.service.resources.size).toBe(1);
    stop.abort();
    await ended;
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

describe("a second daemon on one state folder", () => {
  it("refuses a second daemon on one state folder and names the first", async () => {
    const daemon = world.daemon();
    expect(() => world.daemon()).toThrow(String(process.pid));
    await daemon.close();
    world.write("a.txt", "a");
    await world.sync();
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
      return status?.inAgreement === 4 && status.waiting === 1;
    });
    expect(seen()).toMatchObject({ path: world.root, ownerId: "docs-owner", files: 6, failed: 1 });
    expect(readStatus(world.stateDir, 10)?.troubled).toMatchObject([
      { path: "broken.pdf", code: "not_accepted" },
    ]);
    expect(seen()).toMatchObject({ skipped: 1 });
    expect(readStatus(world.stateDir, 10)?.skipped).toEqual([
      { source: world.root, path: "empty.txt", reason: "the file is empty" },
    ]);
    expect(readStatus(world.stateDir, 0)?.skipped).toEqual([]);
    gate.resolve();
    await until(() => readStatus(world.stateDir, 10)?.sources[0]?.inAgreement === 5);
    stop.abort();
    await ended;
    expect(seen()).toMatchObject({ files: 6, inAgreement: 5, waiting: 0, failed: 1, held: 0 });
  });
});

describe("several sources", () => {
  it("gives each source its owner, tier and rules", async () => {
    const other = join(world.root, "..", "other");
    mkdirSync(other);
    world.write("a.txt", "text a");
    world.write("../other/b.txt", "text b");
    const sources = [
      world.source(),
      {
        ...world.source({ collection: "moderate", exclude: ["no*"] }),
        absolutePath: other,
        ownerId: "second",
      },
    ];
    world.write("../other/no.txt", "left out");
    await world.sync({ sources });
    expect(
      world.service.live().map(({ title, ownerId, collectionId }) => [title, ownerId, collectionId.at(-1)]),
    ).toEqual([
      ["a.txt", "docs-owner", "1"],
      ["b.txt", "second", "2"],
    ]);
    // A source that is no longer configured keeps its resources.
    await world.sync();
    expect(world.service.live()).toHaveLength(2);
    rmSync(join(other, "b.txt"));
    await world.sync({ sources });
    expect(world.service.live()).toHaveLength(1);
  });
});

describe.skipIf(process.getuid?.() === 0)("what cannot be read", () => {
  it("deletes no unreadable file, and syncs its neighbours", async () => {
    world.write("secret/a.txt", "a");
    world.write("b.txt", "b");
    await world.sync();
    chmodSync(join(world.root, "secret"), 0);
    rmSync(join(world.root, "b.txt"));
    await world.sync();
    chmodSync(join(world.root, "secret"), 0o755);
    expect(world.service.live().map(({ title }) => title)).toEqual(["secret/a.txt"]);
  });
});
