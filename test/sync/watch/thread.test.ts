import { EventEmitter } from "node:events";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import type { Report, Request } from "../../../src/sync/watch/messages.ts";
import type { SourceWatch } from "../../../src/sync/watch/source-watch.ts";
import { watchInThread } from "../../../src/sync/watch/thread.ts";
import { sourceAt } from "../scan/tree.ts";

/** Stands for the thread: what it is asked is noted, and it dies and reports when a test says so. */
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
let ready: boolean[];
let watch: SourceWatch;
beforeEach(() => {
  vi.useFakeTimers();
  threads.length = 0;
  errors = [];
  ready = [];
  watch = watchInThread(sourceAt("/docs"), {
    onDirty: () => undefined,
    onError: ({ message }) => errors.push(message),
    onReady: (complete) => ready.push(complete),
  });
  // Another test's threads may have died just now.
  threads[0]?.report({ kind: "ready", id: idOf(), complete: true });
  ready = [];
});
afterEach(async () => {
  await watch.close();
  vi.useRealTimers();
});

/** The thread dies; how long it takes until there is another one. */
const restartMs = (): number => {
  const before = threads.length;
  threads.at(-1)?.die();
  const startMs = Date.now();
  while (threads.length === before) vi.advanceTimersToNextTimer();
  return Date.now() - startMs;
};
const idOf = (): number => threads[0]?.asked.find(({ kind }) => kind === "open")?.id ?? -1;

it("starts a thread that dies again and again ever less often, up to once a minute", () => {
  const waits = Array.from({ length: 8 }, restartMs);
  expect(waits).toEqual([1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000]);
  expect(errors).toHaveLength(8);
});

it("starts a thread that came to watch everything after a second when it dies", () => {
  expect([restartMs(), restartMs(), restartMs()]).toEqual([1000, 2000, 4000]);
  threads.at(-1)?.report({ kind: "ready", id: idOf(), complete: true });
  expect(ready).toEqual([true]);
  expect(restartMs()).toBe(1000);
});

it("has a new thread watch what links led to before", () => {
  const links = { folders: ["/docs/a"], points: [] };
  watch.follow(links);
  restartMs();
  const id = idOf();
  expect(threads[1]?.asked).toMatchObject([
    { kind: "open", id },
    { kind: "links", id, links },
  ]);
});

it("starts no thread again for what is watched no longer", async () => {
  threads[0]?.die();
  await watch.close();
  vi.advanceTimersByTime(3_600_000);
  expect(threads).toHaveLength(1);
});
