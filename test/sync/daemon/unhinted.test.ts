import { rmSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import type { Daemon, World as DaemonWorld } from "../../../src/sync/daemon.ts";
import { REAL_WORLD } from "../../../src/sync/daemon/options.ts";
import { openWorld, until, type World } from "./harness.ts";

/** A watcher that reports nothing, as when the kernel's queue is full. */
const deaf: DaemonWorld = {
  ...REAL_WORLD,
  random: () => 0.5,
  watch: async ({ onReady }) => {
    onReady();
    return await Promise.resolve({
      degraded: () => undefined,
      renew: () => undefined,
      close: async () => await Promise.resolve(),
    });
  },
};

let world: World;
let daemon: Daemon;
let stop: AbortController;
let ended: Promise<void>;
/** Releases the answer to the first create. */
let answer: () => void;
const begin = async (): Promise<void> => {
  const answered = Promise.withResolvers<void>();
  answer = answered.resolve;
  world.service.fault = ({ operation }) =>
    operation === "create" && world.service.count("create") === 1
      ? { kind: "answer-late", until: answered.promise }
      : undefined;
  daemon = world.daemon({ world: deaf });
  stop = new AbortController();
  ended = daemon.run({ signal: stop.signal });
  await until(() => world.service.count("create") === 1);
};
/** Scans the whole folder while the file is in flight, and waits for the end of the scan. */
const look = async (): Promise<void> => {
  world.write("other.txt", "other");
  await daemon.retry();
  await until(() => world.service.live().some(({ title }) => title === "other.txt"));
};

beforeEach(async () => {
  world = await openWorld({ collections: true });
  world.write("a.txt", "before");
  await begin();
});
afterEach(async () => {
  stop.abort();
  await ended;
  await world.end();
});

const texts = (): string[] => world.service.live().map(({ title, content }) => `${title}: ${content ?? ""}`);

it("sees by a scan of the whole folder what a file became while it was sent", async () => {
  world.write("a.txt", "afterwards");
  await look();
  answer();
  await daemon.whenIdle();
  expect(texts()).toEqual(["a.txt: afterwards", "other.txt: other"]);
});

it("sees by a scan of the whole folder that a file disappeared while it was sent", async () => {
  rmSync(join(world.root, "a.txt"));
  await look();
  answer();
  await daemon.whenIdle();
  expect(texts()).toEqual(["other.txt: other"]);
});

it("waits for what a file became while it was sent when asked to wait for everything", async () => {
  world.write("a.txt", "afterwards");
  const waiting = daemon.wait({ signal: stop.signal });
  await look();
  answer();
  expect((await waiting).agreed).toBe(true);
  expect(texts()).toEqual(["a.txt: afterwards", "other.txt: other"]);
});
