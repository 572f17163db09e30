import { mkdirSync, readdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { openOnCopy } from "../../../src/cli/compose/plan-pass.ts";
import { stateFolder } from "../../../src/cli/state/state-folder.ts";
import type { Daemon } from "../../../src/sync/daemon.ts";
import { copyLedger } from "../../../src/sync/operate/offline.ts";
import { openWorld, type World } from "../../sync/daemon/harness.ts";

let world: World;
let running: Daemon;
beforeEach(async () => {
  world = await openWorld();
  world.write("known.md", "# Known\n");
  await world.sync();
  running = world.daemon();
});
afterEach(async () => {
  await running.close();
  await world.end();
});

const plan = async (signal?: AbortSignal) => {
  const { daemon, close } = openOnCopy(stateFolder(world.stateDir), ({ path: stateDir }) =>
    world.daemon({ stateDir }),
  );
  try {
    return (await daemon.syncOnce({ dryRun: true, ...(signal && { signal }) })).planned ?? [];
  } finally {
    await close();
  }
};
const copies = (): string[] => readdirSync(world.stateDir).filter((name) => name.startsWith("plan-"));

it("plans beside a daemon what a pass would send, and leaves nothing behind", async () => {
  for (const name of ["b", "a", "c"]) world.write(`${name}.md`, "x".repeat(4000));
  const requests = world.service.requests.length;
  const planned = await plan();
  expect(planned.map(({ path, action }) => `${action} ${path}`).toSorted()).toEqual([
    "create a.md",
    "create b.md",
    "create c.md",
  ]);
  expect(world.service.requests.length).toBe(requests);
  expect(copies()).toEqual([]);
});

it("leaves nothing behind when the person stops it", async () => {
  world.write("new.md", "new");
  const leaving = new AbortController();
  const planning = plan(leaving.signal);
  leaving.abort(new Error("stopped"));
  await expect(planning).rejects.toThrow("stopped");
  expect(copies()).toEqual([]);
});

/** Larger than any process id: the copy of a process that was killed. */
const DEAD_PID = 99_999_999;

const leave = (name: string): void => {
  mkdirSync(join(world.stateDir, name));
  writeFileSync(join(world.stateDir, name, "ledger.db"), "paths");
};

it("removes the copies of plans that were killed, and no copy that another process plans on", async () => {
  leave(`plan-${DEAD_PID}-a`);
  leave(`plan-${process.pid}-b`);
  leave(`plan-${process.ppid}-c`);
  await plan();
  expect(copies()).toEqual([`plan-${process.ppid}-c`]);
});

it("says of a full disk that the copy cannot be written, not the ledger", async () => {
  const to = join(world.stateDir, "plan-1-full");
  mkdirSync(to);
  symlinkSync("/dev/full", join(to, "ledger.db"));
  expect(() => copyLedger(world.stateDir, to)).toThrow(
    expect.objectContaining({ code: "disk_full", subject: join(to, "ledger.db") }) as Error,
  );
});
