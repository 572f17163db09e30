import { copyFileSync, rmSync } from "node:fs";
import { afterEach, beforeEach, expect, it } from "vitest";
import type { World as DaemonWorld } from "../../../../src/sync/daemon.ts";
import { REAL_WORLD } from "../../../../src/sync/daemon/options.ts";
import { openFollowed, type Followed } from "../../scenarios/followed.ts";

let followed: Followed;
/** Sends the daemon an event for a path. */
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

it("a copy that was sent before its original went keeps its own resource, and the original's is deleted", async () => {
  copyFileSync(followed.at("a.txt"), followed.at("b.txt"));
  hint("b.txt");
  await followed.agrees();
  const copied = followed.ids()["b.txt"];
  rmSync(followed.at("a.txt"));
  hint("a.txt");
  await followed.agrees();
  expect(followed.ids()["b.txt"]).toBe(copied);
  expect(followed.sent()).toEqual({ create: 1, delete: 1 });
});
