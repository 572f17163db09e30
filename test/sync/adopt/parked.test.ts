import { renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import Database from "better-sqlite3";
import { expect, it } from "vitest";
import { REAL_WORLD } from "../../../src/sync/daemon/options.ts";
import { ledgerFile } from "../../../src/sync/ledger/ledger.ts";
import { openWorld, until } from "../daemon/harness.ts";

it("a parked file is tried again when its folder is readable again, though its time came before that", async () => {
  const world = await openWorld({ collections: true });
  world.write("a/x.txt", "text x");
  world.service.fault = ({ operation }) =>
    operation === "create" ? { kind: "answer", status: 500, body: "oops" } : undefined;
  await world.sync();
  expect(world.activity).toMatchObject([{ path: "a/x.txt", outcome: "parked" }]);

  world.service.fault = () => undefined;
  // An ignore file of this size is not read: what it would leave out is unknown, and nothing below it is checked.
  world.write("a/.kbsyncignore", "#".repeat(2 * 1024 * 1024));
  const daemon = world.daemon({ timing: { looserRulesMs: 50 } });
  const stop = new AbortController();
  const ended = daemon.run({ signal: stop.signal });
  await until(() => daemon.status().idle && daemon.status().sources[0]?.unreadable === 1);
  rmSync(join(world.root, "a/.kbsyncignore"));
  await daemon.retry();
  await until(
    () => world.service.live().length === 1,
    () => JSON.stringify(daemon.status().sources),
  );
  stop.abort();
  await ended;
  await world.end();
});

it.each([
  ["cannot be read", { kind: "unreadable", code: "EIO" }],
  ["is refused", { kind: "refused", reason: "is damaged" }],
  ["is left out", { kind: "skipped", reason: "is nothing to send" }],
] as const)(
  "a file whose update was interrupted is sent, though it %s and is unchanged after that",
  async (_, outcome) => {
    const world = await openWorld({ collections: true });
    world.write("a.txt", "before");
    await world.sync();
    world.write("a.txt", "after");
    const step = (name: string): void => {
      if (name === "update:answered") throw new Error("a crash");
    };
    await world.sync({ step }).catch(() => undefined);
    expect(world.service.live()).toMatchObject([{ content: "after" }]);

    world.write("a.txt", "as it was, in trouble");
    const openReader = (): ReturnType<typeof REAL_WORLD.openReader> => ({
      ...REAL_WORLD.openReader(),
      read: async () => Promise.resolve(outcome),
    });
    await world.sync({ world: { ...REAL_WORLD, openReader } });
    world.write("a.txt", "before");
    await world.sync();
    expect(world.service.live()).toMatchObject([{ content: "before" }]);
    await world.end();
  },
);

/**
 * A parked file disappears, another one is renamed to `to`, and at the pass's nth transaction the create without an
 * answer is found to have taken effect. Returns the remaining resources by title; undefined if the row was gone by
 * then.
 */
async function givenAt(nth: number, to: string): Promise<string[] | undefined> {
  const world = await openWorld({ collections: true });
  world.write("a.txt", "text a");
  await world.sync();
  const [first] = world.service.live();
  if (first === undefined) throw new Error("a.txt has no resource");
  world.write("parked.txt", "text of the parked one");
  world.service.fault = ({ operation }) =>
    operation === "create" ? { kind: "answer", status: 500, body: "oops" } : undefined;
  await world.sync();
  world.service.fault = () => undefined;

  const late = { ...first, _id: "d".repeat(24), title: "parked.txt" };
  world.service.resources.set(late._id, late);
  rmSync(join(world.root, "parked.txt"));
  renameSync(join(world.root, "a.txt"), join(world.root, to));
  let commits = 0;
  let given = 0;
  const step = (name: string): void => {
    if (name !== "commit" || ++commits !== nth) return;
    const ledger = new Database(ledgerFile(world.stateDir));
    const give = ledger.prepare(
      "UPDATE files SET doc_id = ?, state = 'agreed' WHERE title = '' AND path = ?",
    );
    given = give.run(late._id, "parked.txt").changes;
    ledger.close();
  };
  await world.sync({ step });
  await world.sync();
  const left = world.service.live().map(({ title }) => title);
  await world.end();
  return given === 0 ? undefined : left;
}

it.each([
  { name: "is gone", to: "b.txt" },
  { name: "has another one in its place", to: "parked.txt" },
])("a parked file that $name leaves no resource behind that it received meanwhile", async ({ to }) => {
  let nth = 1;
  for (; nth < 20; nth += 1) {
    const left = await givenAt(nth, to);
    if (left === undefined) break;
    expect(left, `given at transaction ${nth}`).toEqual([to]);
  }
  expect(nth).toBeGreaterThan(2);
});
