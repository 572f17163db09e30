import { KbsyncError } from "../../lib/failure.ts";
import {
  type AnswerOf,
  type DaemonActivity,
  type DaemonOperation,
  type LineOf,
  LOG_LINES_MAX,
  type RequestOf,
} from "../../wire/daemon.ts";
import type { Daemon } from "../daemon.ts";
import { LEDGER_OPERATIONS } from "../operator/commands.ts";

/** What an operation has beside its request. */
export interface Answering<Line> {
  /** Aborted when the client is gone, and when the daemon stops. */
  readonly signal: AbortSignal;
  /** Sends the head of an answer in lines. */
  readonly begin: () => void;
  /** Sends a line. A client that does not read is cut off. */
  readonly emit: (line: Line) => void;
  /** Resolves when there is room for more lines. For a caller with many of them. */
  readonly drained: () => Promise<void>;
}

/** The operations of a daemon. Each throws what its client is answered. */
export type DaemonOperations = {
  readonly [N in DaemonOperation]: (
    request: RequestOf<N>,
    answering: Answering<LineOf<N>>,
  ) => Promise<AnswerOf<N>>;
};

/** What the daemon does not know of itself. */
export interface DaemonFacts {
  readonly version: string;
  readonly startedMs: number;
}

/** Opens the operations of a daemon. */
export function operationsOf(daemon: Daemon, facts: DaemonFacts): DaemonOperations {
  return {
    status: async () => {
      const { filesPerSecond, ...status } = daemon.status();
      const left = status.progress.total - status.progress.done;
      const secondsLeft = filesPerSecond === undefined || left <= 0 ? null : left / filesPerSecond;
      return { pid: process.pid, ...facts, ...status, filesPerSecond: filesPerSecond ?? null, secondsLeft };
    },
    file: async ({ path }) => ({ ...daemon.about(path), service: daemon.status().service }),
    log: async (query) => ({ activities: daemon.recent(query) }),
    follow: async (query, answering) => follow(daemon, query, answering),
    wait: async (request, answering) => wait(daemon, request, answering),
    pause: async (request) => LEDGER_OPERATIONS.pause(daemon, request),
    resume: async (request) => LEDGER_OPERATIONS.resume(daemon, request),
    retry: async (request) => LEDGER_OPERATIONS.retry(daemon, request),
    approve: async (request) => LEDGER_OPERATIONS.approve(daemon, request),
    rescan: async ({ folder }) => ({ sources: daemon.rescan(folder) }),
    verify: async ({ folder, repair }, { signal }) =>
      daemon.audit({ folder, repair, byPerson: repair, signal }),
  };
}

/** Activities that are kept for a client which has not read the earlier ones yet. */
const LATE_MAX = 2 * LOG_LINES_MAX;

/** Sends what was done lately, then all that is done until the client goes. Throws `control_slow`. */
async function follow(
  daemon: Daemon,
  { limit, path }: RequestOf<"follow">,
  { signal, begin, emit, drained }: Answering<DaemonActivity>,
): Promise<never> {
  const isAsked = ({ source, ...activity }: DaemonActivity): boolean =>
    path === undefined ||
    path === source ||
    [activity.path, activity.from]
      .filter((each) => each !== undefined)
      .map((each) => `${source}/${each}`)
      .some((each) => each === path || each.startsWith(`${path}/`));
  // Both in one turn of the loop, so that nothing is missed and nothing comes twice.
  const left = [...daemon.recent({ limit, path })];
  let isCaughtUp = false;
  const stop = daemon.follow((activity) => {
    if (!isAsked(activity)) return;
    if (isCaughtUp) emit(activity);
    else if (left.length <= LATE_MAX) left.push(activity);
  });
  try {
    begin();
    for (const activity of left) {
      emit(activity);
      await drained();
      signal.throwIfAborted();
    }
    if (left.length > LATE_MAX) {
      throw new KbsyncError("more is done than the reader of the log takes", {
        code: "control_slow",
        retryable: true,
      });
    }
    isCaughtUp = true;
    return await aborted(signal);
  } finally {
    stop();
  }
}

/** How often a waiting client hears that the wait goes on. */
const STILL_MS = 5000;

async function wait(
  daemon: Daemon,
  { path, timeoutSeconds }: RequestOf<"wait">,
  { signal, emit }: Answering<LineOf<"wait">>,
): Promise<AnswerOf<"wait">> {
  const late = new AbortController();
  const timer =
    timeoutSeconds === undefined ? undefined : setTimeout(() => late.abort(), timeoutSeconds * 1000);
  let waiting = 0;
  const still = setInterval(() => emit({ waiting, service: daemon.status().service }), STILL_MS);
  try {
    const { agreed, ...end } = await daemon.wait({
      path,
      signal: AbortSignal.any([signal, late.signal]),
      onWaiting: (files) => emit({ waiting: (waiting = files) }),
    });
    return { end: agreed ? "agreed" : "troubled", ...end, service: daemon.status().service };
  } catch (error) {
    if (!late.signal.aborted || signal.aborted) throw error;
    return { end: "timeout", troubled: waiting, reasons: [], service: daemon.status().service };
  } finally {
    clearTimeout(timer);
    clearInterval(still);
  }
}

/** Throws the signal's reason when it is aborted. */
function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_resolve, reject) => {
    const fail = (): void => reject(signal.reason as Error); // what these signals are aborted with is an Error
    if (signal.aborted) fail();
    else signal.addEventListener("abort", fail, { once: true });
  });
}
