import { EventEmitter } from "node:events";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import type { Report, Request } from "../../../src/sync/watch/worker.ts";
import { openRules } from "../../../src/sync/scan/rules/rules.ts";
import { watchSource, type Watch } from "../../../src/sync/watch/watch.ts";
import { sourceAt } from "../scan/tree.ts";

/** Replaces the thread: records requests, and dies and reports on demand. */
const threads = vi.hoisted(
  () => [] as { asked: Request[]; die: () => void; report: (report: Report) => void }[],
);
vi.mock("node:worker_threads", () => ({
  Worker: class extends EventEmitter {
    readonly asked: Request[] = [];
    constructor() {
      super();
      threads.push({
        asked: this.asked,
        die: () => this.emit("exit", 1),
        report: (report) => this.emit("message", report),
      });
    }
    postMessage(request: Request): void {
      this.asked.push(request);
      if (request.kind === "close") this.emit("message", { kind: "closed", id: request.id });
    }
    async terminate(): Promise<number> {
      return await Promise.resolve(1);
    }
  },
}));

let errors: string[];
let ready: number;
let watch: Watch;
beforeEach(async () => {
  vi.useFakeTimers();
  threads.length = 0;
  errors = [];
  ready = 0;
  watch = await watchSource({
    root: "/docs",
    rules: openRules(sourceAt("/docs")),
    onDirty: () => (ready += 1),
    onError: ({ message }) => errors.push(message),
    onReady: () => (ready += 1),
  });
  // Threads of another test may have died just now.
  threads[0]?.report({ kind: "ready", id: idOf(), complete: true });
  ready = 0;
});
afterEach(async () => {
  await watch.close();
  vi.useRealTimers();
});

/** Kills the thread. Returns the time until there is another one. */
const restartMs = (): number => {
  const before = threads.length;
  threads.at(-1)?.die();
  const startMs = Date.now();
  while (threads.length === before) vi.advanceTimersToNextTimer();
  return Date.now() - startMs;
};
const idOf = (): number => threads[0]?.asked.find(({ kind }) => kind === "open")?.id ?? -1;

it("restarts a thread that dies repeatedly at growing intervals up to a minute", () => {
  const waits = Array.from({ length: 8 }, restartMs);
  expect(waits).toEqual([1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000]);
  expect(errors).toHaveLength(8);
});

it("restarts a thread after a second that had watched everything when it died", () => {
  expect([restartMs(), restartMs(), restartMs()]).toEqual([1000, 2000, 4000]);
  threads.at(-1)?.report({ kind: "ready", id: idOf(), complete: true });
  expect(ready).toBe(1);
  expect(restartMs()).toBe(1000);
});

it("does not restart a thread when nothing is watched any more", async () => {
  threads[0]?.die();
  await watch.close();
  vi.advanceTimersByTime(3_600_000);
  expect(threads).toHaveLength(1);
});
