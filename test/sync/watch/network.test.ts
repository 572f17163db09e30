import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { startRescans } from "../../../src/sync/daemon/watching.ts";
import { openRules } from "../../../src/sync/scan/rules/rules.ts";
import { watchSource, type Watch } from "../../../src/sync/watch/watch.ts";
import { remoteFileSystem } from "../../../src/sync/watch/network.ts";
import { makeTree, removeTree, sourceAt } from "../scan/tree.ts";

/** The result of statfs(2) for every folder; a test has no network file system. */
const fake = vi.hoisted(() => ({ type: 0 }));
vi.mock("node:fs", async (original) => ({
  ...(await original<typeof import("node:fs")>()),
  statfsSync: () => ({ type: fake.type }),
}));

let root = "";
let watch: Watch | undefined;
beforeEach(() => {
  root = makeTree({});
});
afterEach(async () => {
  vi.useRealTimers();
  await watch?.close();
  removeTree(root);
});

it.each([
  [0x6969, "NFS"],
  [0xff534d42, "CIFS"],
  // Above 2^31, as libuv returns it on some systems.
  [0xff534d42 - 2 ** 32, "CIFS"],
  [0xfe534d42, "SMB"],
  [0x65735546, "FUSE"],
  [0x01021997, "9P"],
  [0xef53, undefined],
  [0x01021994, undefined],
])("names statfs type %d %s", (type, name) => {
  fake.type = type;
  expect(remoteFileSystem("/")).toBe(name);
});

it("scans a source on a network file system often, also after its folders are watched", async () => {
  fake.type = 0x6969;
  let ready = false;
  watch = await watchSource({
    root,
    rules: openRules(sourceAt(root)),
    onDirty: () => undefined,
    onError: () => undefined,
    onReady: () => {
      ready = true;
    },
  });
  const opened = watch;
  const degraded = (): string | undefined => opened.degraded();
  expect(degraded()).toContain("NFS");
  await vi.waitUntil(() => ready, { timeout: 15_000, interval: 5 });
  expect(degraded()).toContain("NFS");
  vi.useFakeTimers();
  let scans = 0;
  const rescans = startRescans({
    rescan: () => (scans += 1),
    degraded,
    periodMs: 3_600_000,
    random: () => 0.5,
  });
  vi.advanceTimersByTime(60_000);
  rescans.stop();
  expect(scans).toBe(4);
});
