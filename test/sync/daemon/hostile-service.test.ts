import { rmSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { openWorld, until, type World } from "./harness.ts";

let world: World;
afterEach(async () => {
  await world.end();
});

const contents = (): unknown[] => world.service.live().map(({ content }) => content);

describe("a delete", () => {
  it("is reported and sent again when its answer shows a resource that is not deleted", async () => {
    world = await openWorld();
    world.write("a.txt", "one");
    world.write("b.txt", "two");
    await world.sync();
    rmSync(join(world.root, "a.txt"));
    const data = { _id: "a", title: "a.txt", isDeleted: false };
    world.service.fault = ({ operation }) =>
      operation === "delete"
        ? { kind: "answer", status: 200, body: JSON.stringify({ success: true, message: "ok", data }) }
        : undefined;
    const daemon = world.daemon();
    const { status } = await daemon.syncOnce();
    expect(status.sources).toMatchObject([{ deletesRefused: 1 }]);
    expect(daemon.files({ limit: 10 })).toMatchObject([
      { path: "a.txt", state: "failed", message: expect.stringContaining("isDeleted: false") as string },
    ]);
    await daemon.close();
    world.service.fault = () => undefined;
    await world.sync();
    expect(contents()).toEqual(["two"]);
  });

  it.each(["null as content", "no content"])(
    "does not wait for a copy that the service cannot give: %s",
    async (what) => {
      world = await openWorld({
        reads: true,
        shown: (record) => ({ ...record, content: what === "no content" ? undefined : null }),
      });
      world.write("a.txt", "one");
      world.write("b.txt", "two");
      await world.sync({ settings: { trashDays: 30 } });
      rmSync(join(world.root, "a.txt"));
      await world.sync({ settings: { trashDays: 30 } });
      expect(contents()).toEqual(["two"]);
      expect(world.activity.at(-1)).toMatchObject({
        action: "delete",
        outcome: "done",
        message: "deleted without saving its text: the service's answer has no text of it",
      });
    },
  );
});

it("a wait of days that the service asks for is reported, and `retry` ends it", async () => {
  world = await openWorld();
  world.write("a.txt", "one");
  const warnings: string[] = [];
  let isBusy = true;
  world.service.fault = () =>
    isBusy
      ? {
          kind: "answer",
          status: 503,
          headers: { "retry-after": "259200" },
          body: '{"success":false,"message":"moving house"}',
        }
      : undefined;
  const daemon = world.daemon({ onWarning: (error) => warnings.push(error.message) });
  const stop = new AbortController();
  const ended = daemon.run({ signal: stop.signal });
  await until(() => warnings.length > 0);
  expect(warnings[0]).toContain("the service asks to wait for 4320 min");
  expect(daemon.status()).toMatchObject({
    service: { kind: "waiting", isAsked: true, reason: "moving house" },
  });
  isBusy = false;
  await daemon.retry();
  await until(() => contents().includes("one"));
  stop.abort();
  await ended;
});

describe("a service that changes the resource of the same title instead of creating one", () => {
  it("loses no file's text, and names both files", async () => {
    world = await openWorld({ upserts: true });
    world.write("a.md", "# Same title\n\nfirst");
    await world.sync();
    world.write("b.md", "# Same title\n\nsecond");
    const daemon = world.daemon();
    await daemon.syncOnce();
    expect(daemon.files({ limit: 10 })).toMatchObject([
      { path: "b.md", state: "failed", message: expect.stringContaining("a.md") as string },
    ]);
    expect(contents()).toEqual([expect.stringContaining("first")]);
    expect(world.service.count("create")).toBe(2);
  });

  it("loses no file's text when both files are new", async () => {
    world = await openWorld({ upserts: true });
    world.write("a.md", "# Same title\n\nfirst");
    world.write("b.md", "# Same title\n\nsecond");
    const daemon = world.daemon();
    await daemon.syncOnce();
    const [failed, ...more] = daemon.files({ limit: 10 });
    expect(more).toEqual([]);
    const other = failed?.path === "a.md" ? "b.md" : "a.md";
    expect(failed).toMatchObject({ state: "failed", message: expect.stringContaining(other) as string });
    expect(contents()).toEqual([expect.stringContaining(other === "a.md" ? "first" : "second")]);
  });
});
