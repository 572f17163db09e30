import type { Worker } from "node:worker_threads";
import { KbsyncError } from "../../lib/failure.ts";
import { endThread, takeThread } from "../../lib/idle-threads.ts";
import { entryUrl } from "../../lib/package.ts";
import type { RelativePath } from "../plan/model.ts";
import type { Rules } from "../scan/rules/rules.ts";
import { remoteFileSystem } from "./network.ts";
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

export interface WatchOptions {
  readonly root: string;
  readonly rules: Rules;
  /** A path that may have changed, a file or a folder with all below it; undefined is the whole source. */
  readonly onDirty: (path: RelativePath | undefined) => void;
  /** Something cannot be watched; `degraded` then returns the reason. */
  readonly onError: (error: KbsyncError) => void;
  /** Called once, when every folder is watched. Earlier changes may go unnoticed: scan the whole source after it. */
  readonly onReady: () => void;
}

/** A watched source. */
export type Watch = Awaited<ReturnType<typeof watchSource>>;

/** What the thread watches for one source. */
interface Subscription {
  readonly options: WatchOptions;
  /** Why some changes always go unnoticed. */
  readonly always: string | undefined;
  /** Why some changes go unnoticed now. */
  reason: string | undefined;
  hasBeenReady: boolean;
  /** Set once it is closed; called when the thread has closed it. */
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

/**
 * Watches the wanted folders of a source, with chokidar in a separate thread. Hints are unreliable: they may be excessive,
 * duplicate or late, and name paths that are unchanged or unwanted. Only a scan shows the truth. After a flood that may have lost
 * events, and after a change of an ignore file, the watch restarts and the whole source is reported. Waits for a
 * missing root.
 */
export async function watchSource(options: WatchOptions) {
  const remote = remoteFileSystem(options.root);
  const always = remote && `it is on ${remote}, where changes made elsewhere give no event here`;
  const id = nextId++;
  const subscription: Subscription = { options, always, reason: always, hasBeenReady: false };
  subscriptions.set(id, subscription);
  if (worker === undefined) start();
  else ask(openRequest(id, options));
  let closing: Promise<void> | undefined;
  return {
    /** Why some changes go unnoticed, for a person, so that the source must be scanned often; undefined if none do. */
    degraded: (): string | undefined => subscription.reason,
    /**
     * Restarts the watch of every folder and then reports the whole source. For changes that a scan found without a hint: some folder
     * may have no watch. Takes effect at most once in 5 s.
     */
    renew: (): void => ask({ kind: "renew", id }),
    /** Stops all callbacks at once. May be called again. */
    close: async (): Promise<void> => {
      closing ??= close(id, subscription);
      await closing;
    },
  };
}

function openRequest(id: number, { root, rules }: WatchOptions): Request {
  return { kind: "open", id, source: { ...rules.source, absolutePath: root } };
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
  for (const [id, { options }] of subscriptions) ask(openRequest(id, options));
}

function receive(report: Report): void {
  const subscription = subscriptions.get(report.id);
  if (subscription === undefined) return;
  if (report.kind === "closed") {
    subscription.onClosed?.();
    return;
  }
  if (subscription.onClosed !== undefined) return;
  const { onDirty, onReady } = subscription.options;
  switch (report.kind) {
    case "dirty":
      for (const path of report.paths ?? [undefined]) onDirty(path);
      break;
    case "ready":
      restartMs = RESTART_MS;
      if (report.complete) subscription.reason = subscription.always;
      if (subscription.hasBeenReady) onDirty(undefined);
      else onReady();
      subscription.hasBeenReady = true;
      break;
    case "failed":
      fail(subscription, new KbsyncError(report.message, report.facts));
      break;
  }
}

function fail(subscription: Subscription, error: KbsyncError): void {
  subscription.reason = error.message;
  subscription.options.onError(error);
}

function died(cause: unknown): void {
  worker = undefined;
  for (const subscription of subscriptions.values()) {
    if (subscription.onClosed !== undefined) subscription.onClosed();
    else {
      const subject = subscription.options.root;
      const facts = { code: "watch_failed", subject, retryable: true, cause };
      fail(subscription, new KbsyncError(`the watcher of ${subject} ended and is started again`, facts));
    }
  }
  if (subscriptions.size === 0) return;
  restart = setTimeout(start, restartMs);
  restartMs = Math.min(restartMs * 2, RESTART_MS_MAX);
}

async function close(id: number, subscription: Subscription): Promise<void> {
  await new Promise<void>((resolve) => {
    subscription.onClosed = resolve;
    if (worker === undefined) resolve();
    else ask({ kind: "close", id });
  });
  subscriptions.delete(id);
  if (subscriptions.size > 0) return;
  clearTimeout(restart);
  const last = worker;
  worker = undefined;
  if (last !== undefined) await endThread(last, MODULE);
}
