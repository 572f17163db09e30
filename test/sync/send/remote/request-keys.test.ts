import { rmSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Fault } from "../../../fakes/knowledge-service.ts";
import { openWorld, until, type World } from "../../daemon/harness.ts";

let world: World;
beforeEach(async () => {
  world = await openWorld({ collections: true, keys: true });
});
afterEach(() => world.end());

const EMPTY_LIST: Fault = {
  kind: "answer",
  status: 200,
  body: JSON.stringify({ success: true, message: "listed", data: { resources: [], created: 0 } }),
};
const GONE = JSON.stringify({ success: false, message: "no such resource", error: { code: "not_found" } });
const crash = new Error("crash");
/** Runs a pass that ends after the service created a resource and before the daemon records it. */
const crashAfterCreate = async (): Promise<void> => {
  const daemon = world.daemon({
    step: (name) => {
      if (name === "create:answered") throw crash;
    },
  });
  await expect(daemon.syncOnce()).rejects.toThrow(crash);
  await daemon.close().catch(() => undefined);
};
const keysOfCreates = (): unknown[] =>
  world.service.requests
    .filter(({ operation }) => operation === "create")
    .map(({ headers }) => headers["idempotency-key"]);

describe("a create that the service still works on", () => {
  it("waits for a create in progress through any number of 409s, without parking or repeating it", async () => {
    world.write("a.txt", "text a");
    world.write("b.txt", "text b");
    const gate = Promise.withResolvers<void>();
    world.service.fault = ({ operation, body }) =>
      operation === "create" && body?.["content"] === "text a"
        ? { kind: "wait", until: gate.promise }
        : undefined;
    const synced = world.sync({ settings: { requestTimeoutMs: 1000, concurrency: 1 } });
    // The first attempt timed out, and this many more were answered 409. The other file is sent meanwhile.
    await until(() => world.service.count("create") >= 7);
    expect(world.service.live()).toMatchObject([{ title: "b.txt" }]);
    gate.resolve();
    await synced;
    expect(world.service.resources.size).toBe(2);
    expect(world.activity.map(({ path, outcome }) => [path, outcome])).toEqual([
      ["b.txt", "done"],
      ["a.txt", "done"],
    ]);
  });
});

describe("an update that the service still works on", () => {
  it("waits for an update in progress through any number of 409s, and never sends it under another key", async () => {
    world.write("a.txt", "text a");
    await world.sync();
    world.write("a.txt", "another text");
    const gate = Promise.withResolvers<void>();
    world.service.fault = ({ operation }) =>
      operation === "update" ? { kind: "wait", until: gate.promise } : undefined;
    const synced = world.sync({ settings: { requestTimeoutMs: 1000 } });
    await until(() => world.service.count("update") >= 5);
    gate.resolve();
    await synced;
    const keys = world.service.requests
      .filter(({ operation }) => operation === "update")
      .map(({ headers }) => headers["idempotency-key"]);
    expect(new Set(keys).size).toBe(1);
    expect(world.service.live()).toMatchObject([{ content: "another text" }]);
    expect(world.activity.at(-1)).toMatchObject({ action: "update", outcome: "done" });
  });

  it("sends an update under another key after the service reported the resource gone", async () => {
    world.write("a.txt", "text a");
    await world.sync();
    world.write("a.txt", "another text");
    let updates = 0;
    world.service.fault = ({ operation }) =>
      operation === "update" && (updates += 1) === 1
        ? { kind: "answer", status: 404, body: GONE }
        : undefined;
    await world.sync();
    const keys = world.service.requests
      .filter(({ operation }) => operation === "update")
      .map(({ headers }) => headers["idempotency-key"]);
    expect(keys).toHaveLength(2);
    expect(new Set(keys).size).toBe(2);
    expect(world.service.live()).toMatchObject([{ content: "another text" }]);
  });
});

describe("the key of a create", () => {
  it("sends a create under the same key after a crash while its intent exists", async () => {
    world.write("a.txt", "text a");
    await crashAfterCreate();
    // The created resource is not in the list yet.
    world.service.fault = ({ operation }) => (operation === "list" ? EMPTY_LIST : undefined);
    await world.sync();
    expect(world.service.resources.size).toBe(1);
    expect(new Set(keysOfCreates()).size).toBe(1);
    world.service.fault = () => undefined;
    await world.sync();
    expect(world.service.live()).toMatchObject([{ content: "text a" }]);
    expect(keysOfCreates()).toHaveLength(2);
  });

  it("sends a replacement under the same key after a crash, if the list does not show it yet", async () => {
    world.write("a.txt", "text a");
    await world.sync();
    const resources = world.service.live();
    const body = JSON.stringify({ success: true, message: "listed", data: { resources, created: 1 } });
    // No update turns a text into a file.
    world.write("a.txt", "%PDF-1.4\nbytes");
    await crashAfterCreate();
    world.service.fault = ({ operation }) =>
      operation === "list" ? { kind: "answer", status: 200, body } : undefined;
    await world.sync();
    expect(new Set(keysOfCreates().slice(1)).size).toBe(1);
    world.service.fault = () => undefined;
    await world.sync();
    expect(world.service.live()).toHaveLength(1);
  });

  it("sends a changed file to what its unanswered create made, once a list shows that", async () => {
    world.write("a.txt", "text a");
    await crashAfterCreate();
    world.write("a.txt", "another text");
    let lists = 0;
    world.service.fault = ({ operation }) =>
      operation === "list" && (lists += 1) <= 2 ? EMPTY_LIST : undefined;
    await world.sync();
    await world.sync();
    expect(new Set(keysOfCreates()).size).toBe(1);
    expect(world.service.live()).toMatchObject([{ content: "another text" }]);
  });

  it("sends a create under another key when the resource made under the first was deleted", async () => {
    world.write("a.txt", "text a");
    await crashAfterCreate();
    rmSync(join(world.root, "a.txt"));
    let lists = 0;
    world.service.fault = ({ operation }) =>
      operation === "list" && (lists += 1) === 1 ? EMPTY_LIST : undefined;
    await world.sync();
    // No file of the folder is among the listed documents, so a person decides.
    const daemon = world.daemon();
    await daemon.approve();
    await daemon.syncOnce();
    await daemon.close();
    expect(world.service.live()).toEqual([]);
    world.write("a.txt", "text a");
    await world.sync();
    expect(world.service.live()).toMatchObject([{ content: "text a" }]);
    expect(world.service.resources.size).toBe(2);
    expect(new Set(keysOfCreates()).size).toBe(2);
  });
});
