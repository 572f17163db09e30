import { readdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { afterEach, beforeEach, expect, it } from "vitest";
import { openPlanning } from "../../../src/cli/compose/plan-pass.ts";
import { stateFolder } from "../../../src/cli/state/state-folder.ts";
import { loadConfig } from "../../../src/config/load.ts";
import type { Daemon } from "../../../src/sync/daemon.ts";
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

const plan = () => {
  const config = loadConfig({
    file: undefined,
    stateDir: world.stateDir,
    port: undefined,
    folders: [{ path: world.root, collection: "moderate" }],
    cwd: world.root,
    env: { HOME: world.root },
  });
  const { embedding } = config.kb;
  const priced = { ...config, kb: { ...config.kb, embedding: { ...embedding, price: 2 } } };
  return openPlanning(
    stateFolder(world.stateDir),
    () => priced,
    ({ path: stateDir }) => world.daemon({ stateDir }),
  );
};
const copies = (): string[] => readdirSync(tmpdir()).filter((name) => name.startsWith("kbsync-plan-"));
const { signal } = new AbortController();

it("plans beside a daemon what a pass would send, with its cost, and leaves nothing behind", async () => {
  const before = copies();
  for (const name of ["b", "a", "c"]) world.write(`${name}.md`, "x".repeat(4000));
  const requests = world.service.requests.length;
  expect(await plan()({ limit: 2 }, signal)).toEqual({
    planned: ["a.md", "b.md"].map((path) => ({
      source: world.root,
      path,
      action: "create",
      sends: { bytes: 4000, chars: 4000 },
    })),
    counts: { create: 3 },
    estimate: { documents: 3, bytes: 12_000, tokens: 3000, unknown: 0, cost: 0.006 },
  });
  expect(world.service.requests.length).toBe(requests);
  expect(copies()).toEqual(before);
});

it("plans one pass at a time, and stops when the client leaves", async () => {
  const before = copies();
  world.write("new.md", "new");
  const planning = plan();
  const leaving = new AbortController();
  const first = planning({ limit: 1 }, leaving.signal);
  await expect(planning({ limit: 1 }, signal)).rejects.toMatchObject({ code: "plan_busy", retryable: true });
  leaving.abort(new Error("the client left"));
  await expect(first).rejects.toThrow("the client left");
  expect(copies()).toEqual(before);
  expect(await planning({ limit: 1 }, signal)).toMatchObject({ counts: { create: 1 } });
});
