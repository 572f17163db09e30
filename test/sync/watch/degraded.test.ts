import { afterEach, beforeEach, expect, it, vi } from "vitest";
import type { WatchOptions } from "../../../src/sync/watch/watch.ts";
import { KbsyncError } from "../../../src/lib/failure.ts";
import { openWorld, until, type World } from "../daemon/harness.ts";

/** A watch that sees nothing and fails on demand. */
const fake = vi.hoisted(() => ({
  reason: undefined as string | undefined,
  options: undefined as unknown,
  fails: false,
  renewals: 0,
}));
vi.mock("../../../src/sync/watch/watch.ts", () => ({
  watchSource: async (options: unknown) => {
    if (fake.fails) throw new Error("no thread for the watcher");
    fake.options = options;
    return {
      degraded: () => fake.reason,
      renew: () => void (fake.renewals += 1),
      close: async () => undefined,
    };
  },
}));
const options = (): WatchOptions => fake.options as WatchOptions;

let world: World;
beforeEach(async () => {
  fake.reason = undefined;
  fake.fails = false;
  fake.renewals = 0;
  world = await openWorld({ collections: true });
});
afterEach(async () => {
  vi.restoreAllMocks();
  await world.end();
});

it("reports unnoticed changes while they last", async () => {
  world.write("a.txt", "one");
  const daemon = world.daemon();
  const stop = new AbortController();
  const ended = daemon.run({ signal: stop.signal });
  const reported = (): string | null | undefined => daemon.status().sources[0]?.degraded;
  await until(() => world.service.live().length === 1);
  expect(reported()).toBeNull();
  fake.reason = "the system's limit of watches is reached";
  options().onError(new KbsyncError(fake.reason, { code: "watch_limit" }));
  await until(() => reported() === fake.reason);
  fake.reason = undefined;
  options().onReady();
  await until(() => reported() === null);
  stop.abort();
  await ended;
});

it("scans a degraded folder often, and watches it again when a scan finds changes", async () => {
  const real = globalThis.setInterval;
  // Skips fifteen seconds and the random deviation.
  const shorter = (ms = 0): number => (ms > 11_000 && ms < 19_000 ? 10 : ms);
  vi.spyOn(globalThis, "setInterval").mockImplementation((run: () => void, ms?: number) =>
    real(run, shorter(ms)),
  );
  const daemon = world.daemon();
  const stop = new AbortController();
  const ended = daemon.run({ signal: stop.signal });
  world.write("a.txt", "seen");
  options().onDirty("a.txt");
  await until(() => world.service.live().length === 1);
  await daemon.whenIdle();
  expect(fake.renewals).toBe(0);
  fake.reason = "the system's limit of watches is reached";
  options().onError(new KbsyncError(fake.reason, { code: "watch_limit" }));
  world.write("b.txt", "unseen");
  await until(() => world.service.live().length === 2);
  await until(() => fake.renewals > 0);
  stop.abort();
  await ended;
});

it("ends the daemon and releases the state folder when a watcher cannot start", async () => {
  fake.fails = true;
  const daemon = world.daemon();
  await expect(daemon.run({ signal: new AbortController().signal })).rejects.toThrow("no thread");
  world.write("a.txt", "one");
  await world.sync();
  expect(world.service.live()).toHaveLength(1);
});
