import type { Worker } from "node:worker_threads";
import { KbsyncError } from "../../lib/failure.ts";
import { endThread, takeThread } from "../../lib/idle-threads.ts";
import { entryUrl } from "../../lib/package.ts";
import type { WatchedSource } from "../scan/rules/rules.ts";
import type { Hints } from "./hints.ts";
import type { SourceWatch } from "./source-watch.ts";
import type { Report, Request } from "./worker.ts";

/**
 * Size of the thread's young generation, in MB. The watcher produces garbage in bursts, and by default V8 lets the heap grow
 * with them (78 MB instead of 90 MB for the process at 100,000 files).
 */
const YOUNG_GENERATION_MB = 4;

const MODULE = entryUrl("sync/watch/worker");

/** Pause before a dead watcher thread is restarted; doubles up to the maximum. */
const RESTART_MS = 1_000;
const RESTART_MS_MAX = 60_000;

interface Subscription {
  readonly source: WatchedSource;
  readonly hints: Hints;
  onClosed?: () => void;
}

/**
 * One thread watches all sources of a process. It empties the kernel's queue however busy the main thread is, absorbs
 * bursts of events, and needs one of the 128 inotify instances per user, not one per source. It runs while anything is
 * watched. If it dies, it is restarted, and every source becomes ready once more.
 */
const subscriptions = new Map<number, Subscription>();
let worker: Worker | undefined;
let restart: NodeJS.Timeout | undefined;
let restartMs = RESTART_MS;
let nextId = 1;

/** Watches a source in the watcher thread. */
export function watchInThread(source: WatchedSource, hints: Hints): SourceWatch {
  const id = nextId++;
  const subscription: Subscription = { source, hints };
  subscriptions.set(id, subscription);
  if (worker === undefined) start();
  else ask({ kind: "open", id, source });
  return {
    renew: () => ask({ kind: "renew", id }),
    close: async () => await close(id),
  };
}

function ask(request: Request): void {
  worker?.postMessage(request, []);
}

function start(): void {
  clearTimeout(restart);
  restart = undefined;
  const started = takeThread(MODULE, {
    name: "kbsync-watch",
    resourceLimits: { maxYoungGenerationSizeMb: YOUNG_GENERATION_MB },
  });
  worker = started;
  let cause: unknown;
  started.on("message", receive);
  started.on("error", (error) => {
    cause = error;
  });
  started.on("exit", () => {
    if (worker === started) died(cause);
  });
  for (const [id, { source }] of subscriptions) ask({ kind: "open", id, source });
}

function receive(report: Report): void {
  const subscription = subscriptions.get(report.id);
  if (report.kind === "closed") {
    subscription?.onClosed?.();
    return;
  }
  if (subscription === undefined || subscription.onClosed !== undefined) return;
  const { hints } = subscription;
  switch (report.kind) {
    case "dirty":
      hints.onDirty(report.paths);
      break;
    case "ready":
      restartMs = RESTART_MS;
      hints.onReady(report.complete);
      break;
    case "failed":
      hints.onError(new KbsyncError(report.message, report.facts));
      break;
  }
}

function died(cause: unknown): void {
  worker = undefined;
  for (const { source, hints, onClosed } of subscriptions.values()) {
    if (onClosed !== undefined) onClosed();
    else {
      const facts = { code: "watch_failed", subject: source.absolutePath, retryable: true, cause };
      hints.onError(
        new KbsyncError(`the watcher of ${source.absolutePath} ended and is started again`, facts),
      );
    }
  }
  if (subscriptions.size === 0) return;
  restart = setTimeout(start, restartMs);
  restartMs = Math.min(restartMs * 2, RESTART_MS_MAX);
}

async function close(id: number): Promise<void> {
  const subscription = subscriptions.get(id);
  if (subscription === undefined) return;
  if (worker !== undefined) {
    await new Promise<void>((resolve) => {
      subscription.onClosed = resolve;
      ask({ kind: "close", id });
    });
  }
  subscriptions.delete(id);
  if (subscriptions.size > 0) return;
  clearTimeout(restart);
  const last = worker;
  worker = undefined;
  if (last !== undefined) await endThread(last, MODULE);
}
