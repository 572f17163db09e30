import { linkSync, renameSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import type { World as DaemonWorld } from "../../../src/sync/daemon.ts";
import { REAL_WORLD } from "../../../src/sync/daemon/options.ts";
import { openFollowed, type Followed } from "../scenarios/followed.ts";

/** A disk that finds a file by its name in any case, as macOS and Windows shares do. */
const disk = vi.hoisted(() => ({ isCaseBlind: true }));
vi.mock("node:fs", async (original) => {
  const real = await original<typeof import("node:fs")>();
  const spelled = (path: string): string => {
    if (!disk.isCaseBlind || path === "/" || real.existsSync(path)) return path;
    const folder = spelled(dirname(path));
    const name = basename(path).toLowerCase();
    const found = real.existsSync(folder)
      ? real.readdirSync(folder).find((each) => each.toLowerCase() === name)
      : undefined;
    return join(folder, found ?? basename(path));
  };
  const lstatSync = (path: string, ...rest: [object?]): unknown =>
    (real.lstatSync as (path: string, ...rest: [object?]) => unknown)(spelled(path), ...rest);
  return { ...real, lstatSync };
});

let followed: Followed;
/** Gives the daemon the hint that something happened at a path. */
let hint: (path: string) => void;
const watch: DaemonWorld["watch"] = async ({ onDirty, onReady }) => {
  hint = onDirty;
  onReady();
  return await Promise.resolve({
    degraded: () => undefined,
    renew: () => undefined,
    close: async () => await Promise.resolve(),
  });
};
beforeEach(async () => {
  disk.isCaseBlind = true;
  const files = Array.from({ length: 20 }, (_, n) => [`other/${n}.txt`, `text ${n}`] as const);
  followed = await openFollowed(
    { "a.txt": "text of a", "Folder/b.txt": "text of b", ...Object.fromEntries(files) },
    { world: { ...REAL_WORLD, watch } },
  );
  await followed.daemon.whenIdle();
});
afterEach(async () => {
  await followed.end();
});

it("keeps the ids of files and folders whose names change in case only, without a second resource", async () => {
  const { at, agrees, ids, sent } = followed;
  const before = ids();
  renameSync(at("a.txt"), at("A.txt"));
  renameSync(at("Folder"), at("folder"));
  for (const path of ["a.txt", "A.txt", "Folder", "folder"]) hint(path);
  await agrees();
  expect(ids()).toMatchObject({ "A.txt": before["a.txt"], "folder/b.txt": before["Folder/b.txt"] });
  expect(sent()).toEqual({ update: 2 });
});

it("counts hard links whose names differ in case only as two files where the disk distinguishes them", async () => {
  disk.isCaseBlind = false;
  const { at, agrees, ids } = followed;
  linkSync(at("a.txt"), at("A.txt"));
  for (const path of ["a.txt", "A.txt"]) hint(path);
  await agrees();
  expect(Object.keys(ids())).toEqual(expect.arrayContaining(["a.txt", "A.txt"]));
});
