import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { DaemonActivity } from "../../../src/wire/daemon-files.ts";
import type { PlannedAction } from "../../../src/sync/operate/preview.ts";
import { readStatus } from "../../../src/sync/operate/status.ts";
import { openWorld, type World } from "../daemon/harness.ts";
import { randomRuns } from "../../random-runs.ts";

/** So low that a few deletes count as many. */
const SETTINGS = { holdDeletesOver: 3, holdDeletesPercent: 20 };

/** A change to the folder. */
type Change =
  | { readonly kind: "write" | "remove" | "empty" | "enlarge" | "archive" | "copy"; readonly path: string }
  | { readonly kind: "rename" | "recreate"; readonly path: string; readonly to: string };

const NAMES = ["0.txt", "1.txt", "d/2.txt", "d/3.txt", "d/e/4.txt", "5.md", "6.md", "new.txt", "d/new.txt"];
const name = fc.constantFrom(...NAMES);
const change: fc.Arbitrary<Change> = fc.oneof(
  fc.record({ kind: fc.constantFrom("write", "remove", "empty", "enlarge", "archive", "copy"), path: name }),
  fc.record({ kind: fc.constantFrom("rename", "recreate"), path: name, to: name }),
);

function apply(world: World, each: Change, index: number): void {
  const path = join(world.root, each.path);
  mkdirSync(dirname(path), { recursive: true });
  switch (each.kind) {
    case "write":
      writeFileSync(path, `changed ${index}`);
      break;
    case "remove":
      rmSync(path, { force: true });
      break;
    case "empty":
      writeFileSync(path, "");
      break;
    case "enlarge":
      writeFileSync(path, "x".repeat(2000));
      break;
    case "archive":
      writeFileSync(`${path}.zip`, "PK");
      break;
    case "copy":
      writeFileSync(join(world.root, `copy${index}.txt`), `text ${each.path}`);
      break;
    case "rename":
    case "recreate": {
      const to = join(world.root, each.to);
      if (!existsSync(path) || each.path === each.to) return;
      mkdirSync(dirname(to), { recursive: true });
      renameSync(path, to);
      if (each.kind === "recreate") writeFileSync(path, `another ${index}`);
    }
  }
}

const start = async (): Promise<World> => {
  const world = await openWorld();
  for (const path of NAMES.slice(0, 7)) world.write(path, `text ${path}`);
  await sync(world);
  world.activity.length = 0;
  return world;
};
const sources = (world: World) => [world.source({ maxFileBytes: 1000 })];
const sync = async (world: World): Promise<void> =>
  world.sync({ settings: SETTINGS, sources: sources(world) });
const plan = async (world: World): Promise<readonly PlannedAction[]> => {
  const daemon = world.daemon({ settings: SETTINGS, sources: sources(world) });
  try {
    return (await daemon.syncOnce({ dryRun: true })).planned ?? [];
  } finally {
    await daemon.close();
  }
};

const wordsOfPlan = ({ action, path, from, reason }: PlannedAction): string =>
  `${action} ${path} from ${from ?? "-"}${["refuse", "skip"].includes(action) ? `: ${reason}` : ""}`;
const wordsOfActivity = ({ action, outcome, path, from, message }: DaemonActivity): string => {
  if (outcome === "refused") return `refuse ${path} from -: ${message}`;
  if (outcome === "skipped") return `skip ${path} from -: ${message}`;
  return `${action} ${path} from ${from ?? "-"}`;
};
/** The actions of a pass, in the form of a plan. */
const done = (world: World): string[] => {
  const held = readStatus(world.stateDir, 100)?.troubled.filter(({ state }) => state === "held") ?? [];
  return [
    ...world.activity.map(wordsOfActivity),
    ...held.map(({ path }) => `hold ${path} from -`),
  ].toSorted();
};

describe("a dry run", () => {
  it("predicts the next pass, whatever happened to the folder, and sends nothing", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(change, { maxLength: 7 }), async (changes) => {
        const world = await start();
        try {
          for (const [index, each] of changes.entries()) apply(world, each, index);
          const before = world.service.requests.length;
          const planned = await plan(world);
          expect(world.service.requests.length).toBe(before);
          await sync(world);
          expect(done(world)).toEqual(planned.map(wordsOfPlan).toSorted());
        } finally {
          await world.end();
        }
      }),
      { numRuns: randomRuns(15) },
    );
  }, 120_000);

  it("predicts held deletes with the reason, and a halt for a replaced folder", async () => {
    const world = await start();
    try {
      for (const path of NAMES.slice(0, 5)) rmSync(join(world.root, path));
      expect((await plan(world)).map(({ action, reason }) => `${action}: ${reason}`)).toEqual(
        Array.from({ length: 5 }, () => "hold: 5 deletes at once, 71 % of the source"),
      );
      renameSync(world.root, `${world.root}-away`);
      expect(await plan(world)).toEqual([
        { source: world.root, path: "", action: "halt", reason: "the folder is missing or is not a folder" },
      ]);
    } finally {
      await world.end();
    }
  });

  it("counts recent deletes like the pass does", async () => {
    const world = await start();
    try {
      for (const path of NAMES.slice(0, 3)) rmSync(join(world.root, path));
      await sync(world);
      rmSync(join(world.root, "d/3.txt"));
      expect(await plan(world)).toMatchObject([{ action: "hold", path: "d/3.txt" }]);
    } finally {
      await world.end();
    }
  });

  it("predicts deletes that were approved or started and not done", async () => {
    const world = await start();
    try {
      rmSync(join(world.root, "0.txt"));
      world.service.fault = ({ operation }) =>
        operation === "delete" ? { kind: "answer", status: 409, body: '{"success":false}' } : undefined;
      await sync(world);
      world.service.fault = () => undefined;
      expect(await plan(world)).toMatchObject([{ action: "delete", path: "0.txt" }]);
      await sync(world);
      expect(await plan(world)).toEqual([]);
    } finally {
      await world.end();
    }
  });
});
