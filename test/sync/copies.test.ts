import { copyFileSync, rmSync, writeFileSync } from "node:fs";
import { afterEach, beforeEach, expect, it } from "vitest";
import type { World as DaemonWorld } from "../../src/sync/daemon.ts";
import { REAL_WORLD } from "../../src/sync/daemon/options.ts";
import { until } from "./harness.ts";
import { openFollowed, type Followed } from "./scenarios/followed.ts";

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
const remove = async (path: string): Promise<void> => {
  rmSync(followed.at(path));
  hint(path);
  await until(() => !followed.daemon.status().idle);
};

beforeEach(async () => {
  const files = Array.from({ length: 20 }, (_, n) => [`other/${n}.txt`, `text ${n}`] as const);
  followed = await openFollowed(
    { "a.txt": "text of a", ...Object.fromEntries(files) },
    { world: { ...REAL_WORLD, watch } },
  );
  await followed.daemon.whenIdle();
});
afterEach(async () => {
  await followed.end();
});

it("keeps the id of a file that is absent for less than a burst of deletes lasts, and written anew", async () => {
  const before = followed.ids()["a.txt"];
  await remove("a.txt");
  writeFileSync(followed.at("a.txt"), "text of a, saved again");
  hint("a.txt");
  await followed.agrees();
  expect(followed.ids()["a.txt"]).toBe(before);
  expect(followed.sent()).toEqual({ update: 1 });
});

it("gives a copy the id of its original when the original goes before the copy is seen", async () => {
  const before = followed.ids()["a.txt"];
  copyFileSync(followed.at("a.txt"), followed.at("b.txt"));
  await remove("a.txt");
  hint("b.txt");
  await followed.agrees();
  expect(followed.ids()["b.txt"]).toBe(before);
  expect(followed.sent()).toEqual({ update: 1 });
});

it("gives a copy the id of its original when both are seen at once", async () => {
  const before = followed.ids()["a.txt"];
  copyFileSync(followed.at("a.txt"), followed.at("b.txt"));
  rmSync(followed.at("a.txt"));
  for (const path of ["b.txt", "a.txt"]) hint(path);
  await followed.agrees();
  expect(followed.ids()["b.txt"]).toBe(before);
  expect(followed.sent()).toEqual({ update: 1 });
});

it("leaves a copy that was sent before its original went its own resource, and deletes the original's", async () => {
  copyFileSync(followed.at("a.txt"), followed.at("b.txt"));
  hint("b.txt");
  await followed.agrees();
  const copied = followed.ids()["b.txt"];
  await remove("a.txt");
  await followed.agrees();
  expect(followed.ids()["b.txt"]).toBe(copied);
  expect(followed.sent()).toEqual({ create: 1, delete: 1 });
});
