import { rmSync } from "node:fs";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { openMetrics, type Metrics } from "../../src/metrics/metrics.ts";
import { openWorld, until, type World } from "../sync/daemon/harness.ts";
import { declaredNames, OWN_METRICS, valueOf } from "./names.ts";

let world: World;
let metrics: Metrics;
let stop: AbortController;
let ended: Promise<void> | undefined;
beforeEach(async () => {
  world = await openWorld({ collections: true });
  metrics = openMetrics("0.0.0-test");
  stop = new AbortController();
  ended = undefined;
});
afterEach(async () => {
  stop.abort();
  await ended;
  await world.end();
});

/** Runs a daemon that is measured. */
function run(settings: Record<string, unknown> = {}) {
  const daemon = world.daemon({
    settings,
    observer: metrics.daemon,
    onActivity: (activity) => metrics.daemon.activity(activity),
  });
  metrics.readDaemon(() => daemon.figures());
  ended = daemon.run({ signal: stop.signal });
  return daemon;
}
const read = async (): Promise<string> => (await metrics.text()).text;
const files = (text: string, state: string): number | undefined =>
  valueOf(text, "kbsync_sync_files", { state });

describe("a daemon's metrics", () => {
  it("the daemon's metrics have the documented names and the states of files, sources and the service", async () => {
    world.write("a.txt", "one");
    world.write("b.txt", "two");
    world.write("empty.txt", "");
    const daemon = run();
    await daemon.whenIdle();
    const text = await read();
    const own = declaredNames(text).filter((name) => name.startsWith("kbsync_"));
    const promised = Object.keys(OWN_METRICS).filter((name) => !name.startsWith("kbsync_service_"));
    expect(own.toSorted()).toEqual(promised.toSorted());
    expect(files(text, "searchable")).toBe(2);
    expect(files(text, "skipped")).toBe(1);
    expect(files(text, "waiting")).toBe(0);
    expect(valueOf(text, "kbsync_sync_sources", { condition: "configured" })).toBe(1);
    expect(valueOf(text, "kbsync_sync_watched_sources", { backend: "events" })).toBe(1);
    expect(valueOf(text, "kbsync_sync_service_state", { state: "open" })).toBe(1);
    expect(valueOf(text, "kbsync_sync_requests_total", { request: "create", outcome: "done" })).toBe(2);
    expect(valueOf(text, "kbsync_sync_activities_total", { action: "create", outcome: "done" })).toBe(2);
    expect(valueOf(text, "kbsync_sync_oldest_waiting_seconds")).toBe(0);
    expect(valueOf(text, "kbsync_sync_planned")).toBe(1);
    expect(valueOf(text, "kbsync_sync_queue_files")).toBe(0);
    expect(valueOf(text, "kbsync_sync_rescan_duration_seconds_count")).toBeGreaterThan(0);
    expect(valueOf(text, "kbsync_sync_last_rescan_timestamp_seconds")).toBeGreaterThan(1e9);
    for (const word of ["a.txt", world.root, "docs-owner", world.service.key])
      expect(text).not.toContain(word);
  });

  it.each([
    ["is away", { kind: "answer", status: 503, body: '{"success":false,"message":"away"}' } as const],
    ["fails on this one file, which is parked", { kind: "answer", status: 500, body: "{}" } as const],
  ])("metrics report for how long a change waits while the service %s", async (_name, fault) => {
    world.write("a.txt", "one");
    const daemon = run();
    await daemon.whenIdle();
    world.service.fault = () => fault;
    world.write("a.txt", "two");
    await until(() => daemon.figures().oldestWaitingSeconds > 0.5);
    const text = await read();
    expect(valueOf(text, "kbsync_sync_oldest_waiting_seconds")).toBeGreaterThan(0.5);
    expect(files(text, "waiting")).toBe(1);
    expect(valueOf(text, "kbsync_sync_requests_total", { outcome: "unanswered" })).toBeGreaterThan(0);
    world.service.fault = () => undefined;
    await until(() => {
      // A request in flight when the daemon ends is not awaited.
      daemon.retry(undefined).catch(() => undefined);
      return daemon.status().sources[0]?.waiting === 0;
    });
    expect(daemon.figures().oldestWaitingSeconds).toBe(0);
  });

  it("the daemon's metrics count the files of a halted source as waiting", async () => {
    world.write("a.txt", "one");
    const daemon = run();
    await daemon.whenIdle();
    rmSync(world.root, { recursive: true });
    await until(() => daemon.status().sources[0]?.halted === true);
    const text = await read();
    expect(valueOf(text, "kbsync_sync_sources", { condition: "halted" })).toBe(1);
    expect(files(text, "searchable")).toBe(0);
    expect(files(text, "waiting")).toBe(1);
    expect(valueOf(text, "kbsync_sync_oldest_waiting_seconds")).toBe(0);
  });

  it("the daemon's metrics do not count a paused source as waiting too long", async () => {
    world.write("a.txt", "one");
    const daemon = run();
    await daemon.whenIdle();
    await daemon.pause(undefined);
    world.write("a.txt", "two");
    await until(() => daemon.status().sources[0]?.waiting === 1);
    const text = await read();
    expect(valueOf(text, "kbsync_sync_sources", { condition: "paused" })).toBe(1);
    expect(valueOf(text, "kbsync_sync_oldest_waiting_seconds")).toBe(0);
  });
});
