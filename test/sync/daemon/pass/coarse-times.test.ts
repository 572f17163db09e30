import type { Stats } from "node:fs";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { racyUntilMs } from "../../../../src/sync/plan/file-times.ts";
import { openWorld, until, type World } from "../harness.ts";

/** The step of the file system's times, as if one had just started; undefined: real times. */
const times = vi.hoisted(() => ({ stepMs: undefined as number | undefined }));
vi.mock("node:fs", async (original) => {
  const real = await original<typeof import("node:fs")>();
  const coarse = <T extends Stats | undefined>(stats: T): T =>
    stats === undefined || times.stepMs === undefined
      ? stats
      : Object.assign(stats, { mtimeMs: times.stepMs, ctimeMs: times.stepMs });
  return {
    ...real,
    lstatSync: (...args: Parameters<typeof real.lstatSync>) => coarse(real.lstatSync(...args) as Stats),
    fstatSync: (fd: number) => coarse(real.fstatSync(fd)),
  };
});

const stepOf = (ms: number): number => Math.floor(ms / 2000) * 2000;

let world: World;
beforeEach(async () => {
  world = await openWorld();
});
afterEach(async () => {
  times.stepMs = undefined;
  await world.end();
});
const texts = (): (string | undefined)[] => world.service.live().map(({ content }) => content);

it("a second save of the same size within one step of coarse file times is sent", async () => {
  times.stepMs = stepOf(Date.now()) + 60_000;
  world.write("a.md", "first.");
  await world.sync();
  world.write("a.md", "second");
  await world.sync();
  expect(texts()).toEqual(["second"]);
  // When the step is over the file is read once more, and is clean from then on.
  times.stepMs = stepOf(Date.now()) - 60_000;
  const before = world.service.requests.length;
  await world.sync();
  world.write("a.md", "third.");
  await world.sync();
  expect(world.service.requests.length).toBe(before);
});

it("a running daemon sends it too: a second save of the same size within one step of coarse file times", async () => {
  times.stepMs = stepOf(Date.now()) + 60_000;
  world.write("a.md", "first.");
  const daemon = world.daemon();
  const stopping = new AbortController();
  const running = daemon.run({ signal: stopping.signal });
  await until(() => texts()[0] === "first.");
  world.write("a.md", "second");
  await until(() => texts()[0] === "second");
  stopping.abort();
  await running;
});

it.each([
  { name: "fine times", mtimeMs: 10_000.5, ctimeMs: 10_000.5, readAtMs: 10_001, racy: false },
  {
    name: "a whole second set by a copy",
    mtimeMs: 10_000,
    ctimeMs: 10_123.25,
    readAtMs: 10_200,
    racy: false,
  },
  { name: "whole seconds, just now", mtimeMs: 10_000, ctimeMs: 10_000, readAtMs: 10_200, racy: true },
  { name: "an old time, changed just now", mtimeMs: 2000, ctimeMs: 10_000, readAtMs: 10_200, racy: true },
  { name: "whole seconds long ago", mtimeMs: 10_000, ctimeMs: 10_000, readAtMs: 60_000, racy: false },
  { name: "whole seconds in the future", mtimeMs: 90_000, ctimeMs: 10_000, readAtMs: 60_000, racy: true },
])("decides whether a file with $name is racily clean: $racy", ({ mtimeMs, ctimeMs, readAtMs, racy }) => {
  expect(racyUntilMs({ mtimeMs, ctimeMs }, readAtMs) !== undefined).toBe(racy);
});
