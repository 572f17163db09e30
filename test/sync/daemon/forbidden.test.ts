import { rmSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { FakeRequest, Fault } from "../../fakes/knowledge-service.ts";
import { openWorld, SINGLE_DELETES, until, type World } from "./harness.ts";

let world: World;
beforeEach(async () => {
  world = await openWorld();
});
afterEach(async () => {
  await world.end();
});

const FORBIDDEN: Fault = { kind: "answer", status: 403, body: '{"success":false,"message":"not for you"}' };
const forbid = (...operations: readonly FakeRequest["operation"][]): void => {
  world.service.fault = ({ operation }) => (operations.includes(operation) ? FORBIDDEN : undefined);
};
const contents = (): unknown[] => world.service.live().map(({ content }) => content);
const WAITS = { path: "a.txt", state: "waiting", message: expect.stringContaining("not for you") as string };

describe("a service that forbids one kind of request", () => {
  it("sends everything else while deletes are forbidden, and reports why they wait", async () => {
    world.write("a.txt", "one");
    world.write("b.txt", "two");
    await world.sync();
    forbid("delete");
    const daemon = world.daemon({ timing: SINGLE_DELETES });
    const stop = new AbortController();
    const ended = daemon.run({ signal: stop.signal });
    await until(() => daemon.status().idle);
    rmSync(join(world.root, "a.txt"));
    await until(() => daemon.status().sources[0]?.deletesRefused === 1);
    world.write("b.txt", "two again");
    world.write("c.txt", "three");
    await until(() => contents().includes("two again") && contents().includes("three"));
    await until(() => daemon.status().idle);
    expect(daemon.status()).toMatchObject({ service: { kind: "open" } });
    expect(daemon.files({ limit: 10 })).toMatchObject([
      { path: "a.txt", message: "the service forbids delete requests (403): not for you" },
    ]);
    expect(world.service.count("delete")).toBeLessThanOrEqual(2);
    stop.abort();
    await ended;
    world.service.fault = () => undefined;
    await world.sync();
    expect(contents()).toEqual(["two again", "three"]);
  });

  it("sends few requests for many deletes that are forbidden, and warns once", async () => {
    for (let n = 0; n < 30; n += 1) world.write(`${n}.txt`, `text ${n}`);
    await world.sync();
    forbid("delete");
    for (let n = 0; n < 10; n += 1) rmSync(join(world.root, `${n}.txt`));
    const before = world.service.requests.length;
    const warnings: string[] = [];
    const daemon = world.daemon({ onWarning: (error) => warnings.push(error.message) });
    const { status } = await daemon.syncOnce();
    expect(status.sources).toMatchObject([{ deletesRefused: 10 }]);
    expect(warnings).toEqual(["the service forbids delete requests (403): not for you"]);
    expect(world.service.requests.length - before).toBeLessThan(40);
  });

  it("waits with a file whose update is forbidden, and sends the others", async () => {
    world.write("a.txt", "one");
    await world.sync();
    world.write("a.txt", "two, longer");
    world.write("b.txt", "new");
    forbid("update");
    const daemon = world.daemon();
    await daemon.syncOnce();
    expect(daemon.files({ limit: 10 })).toMatchObject([WAITS]);
    expect(daemon.status().service.kind).toBe("open");
    expect(contents()).toContain("new");
  });

  it("creates the others when the first file of a new folder is forbidden", async () => {
    world.write("a.txt", "one");
    world.write("b.txt", "three");
    world.service.fault = ({ body }) => (body?.["title"] === "a.txt" ? FORBIDDEN : undefined);
    const daemon = world.daemon();
    await daemon.syncOnce();
    expect(daemon.files({ limit: 10 })).toMatchObject([WAITS]);
    expect(contents()).toEqual(["three"]);
  });

  it.each(["one pass", "a running daemon"])(
    "waits with all files of a new folder while creates are forbidden, in %s",
    async (how) => {
      world.write("a.txt", "one");
      world.write("b.txt", "three");
      forbid("create");
      const daemon = world.daemon();
      const stop = new AbortController();
      const ended = how === "one pass" ? daemon.syncOnce() : daemon.run({ signal: stop.signal });
      await until(() => daemon.files({ limit: 10 }).filter(({ code }) => code === "no_answer").length === 2);
      if (how === "one pass") await ended;
      expect(daemon.files({ limit: 10 })).toMatchObject([WAITS, { ...WAITS, path: "b.txt" }]);
      expect(world.service.count("create")).toBeLessThan(8);
      stop.abort();
      await ended;
    },
  );

  it("takes a 403 to every request for a refused key", async () => {
    world.write("a.txt", "one");
    await world.sync();
    world.write("a.txt", "two, longer");
    world.service.fault = () => FORBIDDEN;
    const daemon = world.daemon();
    await expect(daemon.syncOnce()).rejects.toMatchObject({ code: "key_refused" });
    expect(daemon.status().sources[0]).toMatchObject({ failed: 0 });
  });

  it("takes a 401 to one kind of request for a refused key", async () => {
    world.write("a.txt", "one");
    await world.sync();
    world.write("a.txt", "two, longer");
    world.service.fault = ({ operation }) =>
      operation === "update" ? { ...FORBIDDEN, status: 401 } : undefined;
    const daemon = world.daemon();
    await expect(daemon.syncOnce()).rejects.toMatchObject({ code: "key_refused" });
  });
});
