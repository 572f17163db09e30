import type { Logger } from "pino";
import { openNotifier, type Notifier } from "../../system/notify.ts";
import { addSample, type Progress, type ProgressSample, stalledMs } from "../../system/progress.ts";
import { duration } from "../output/progress.ts";

/** What a service manager is told about. */
export interface Supervised {
  /** Whether a start is over: everything listens, and what is to be done is known. */
  isReady(): boolean;
  /** How it stands, in one line. */
  words(): string;
  /** The parts whose standing still means that the process hangs, by name. */
  samples(): Readonly<Record<string, ProgressSample>>;
}

/** Keeps a service manager told. Without one everything here does nothing and costs nothing. */
export interface Supervisor {
  /** This is what runs now; READY is told when it is ready. */
  watch(supervised: Supervised): void;
  /** Something that the words tell may have changed. May be called thousands of times a second. */
  changed(): void;
  /** The configuration is being read again: the manager waits until `reloaded`, or until what is watched next is ready. */
  reloading(): void;
  /** It was read. `words`: why it is not used, told in the status until the next time; undefined: all is well. */
  reloaded(words: string | undefined): void;
  /** What comes now may hold the loop up for long, at a start: the manager is asked to wait for it. */
  longStep(): void;
  /** Tells nothing more. */
  close(): void;
}

/**
 * A part that stands still for so long while there is work hangs, in milliseconds. Longer than anything that is waited
 * for by itself: a document's conversion ends after one minute, a request after `sync.requestTimeoutMs`.
 */
export const STALL_MS = 300_000;
/** Signs of life where nobody asked for a rhythm, and at least this often, in milliseconds: the status is looked at too. */
const TICK_MS_MAX = 20_000;
/** Signs of life in the time in which one is expected: one that comes late does not end the process. */
const TICKS_A_PERIOD = 3;
/** The status is told at most this often, in milliseconds: a first sync changes it a thousand times a second. */
const STATUS_EVERY_MS = 1000;
/** How often it is looked whether a start is over, in milliseconds. */
const READY_EVERY_MS = 100;
/** A start that goes on asks for this much more time, in milliseconds, at each tick: a large tree takes long to look at. */
const EXTEND_MS = 90_000;
/**
 * Longest time before anything is watched, in milliseconds: until then nothing tells whether a start gets on. What takes
 * longest is a store of a hundred gigabytes that is copied and brought up to date.
 */
export const START_MS_MAX = 3_600_000;

export interface SupervisorOptions {
  readonly env: NodeJS.ProcessEnv;
  readonly log: Logger;
  /** Aborted when the program is to end: that is told at once, however far its start is, and READY not any more. */
  readonly signal: AbortSignal;
  /** Longest time that a request may take. */
  readonly requestTimeoutMs: number;
  /** A clock that stands while the machine sleeps. Default: `performance.now`. */
  readonly nowMs?: () => number;
  /** Default: the service manager that the environment names. */
  readonly notifier?: Notifier;
}

/** Opens the way to whoever manages this process. */
export function openSupervisor(options: SupervisorOptions): Supervisor {
  const { log, signal, nowMs = () => performance.now() } = options;
  const notifier = options.notifier ?? notifierOfManager(options);
  if (!notifier.hasListener) return NOBODY;
  const stallMs = Math.max(STALL_MS, 2 * options.requestTimeoutMs);
  const progressOf = new Map<string, Progress>();
  const stalled = new Set<string>();
  let watched: Supervised | undefined;
  let isReady = false;
  const openedMs = nowMs();
  /** Something was watched, or is not to be any more. */
  let hasBegun = false;
  let isStopping = false;
  let isTooLong = false;
  let refusal: string | undefined;
  let isClosed = false;
  let statusTimer: NodeJS.Timeout | undefined;
  let readyTimer: NodeJS.Timeout | undefined;

  const reportStatus = (): void => {
    statusTimer = undefined;
    if (watched === undefined || isClosed) return;
    notifier.status(refusal === undefined ? watched.words() : `${refusal}; ${watched.words()}`);
  };
  const changed = (): void => {
    if (!isClosed) statusTimer ??= setTimeout(reportStatus, STATUS_EVERY_MS).unref();
  };
  const becomeReady = (): void => {
    if (isStopping) return;
    isReady = true;
    clearInterval(readyTimer);
    readyTimer = undefined;
    clearTimeout(statusTimer);
    reportStatus();
    notifier.ready();
  };
  const checkReady = (): void => {
    if (watched?.isReady() === true) becomeReady();
  };
  /** Follows every part by one look, and says which hang. */
  const hanging = (): readonly string[] => {
    const now = nowMs();
    const samples = Object.entries(watched?.samples() ?? {});
    for (const name of progressOf.keys())
      if (!samples.some(([each]) => each === name)) progressOf.delete(name);
    for (const [name, sample] of samples) progressOf.set(name, addSample(progressOf.get(name), sample, now));
    return [...progressOf]
      .filter(([, progress]) => stalledMs(progress, now) >= stallMs)
      .map(([name]) => name);
  };
  const startsTooLong = (): boolean => {
    if (hasBegun || nowMs() - openedMs < START_MS_MAX) return false;
    if (!isTooLong) log.error({ code: "start_too_long" }, tooLongWords());
    isTooLong = true;
    return true;
  };
  const tick = (): void => {
    notifier.retry();
    const hang = hanging();
    for (const name of hang) {
      if (!stalled.has(name)) log.error({ code: "no_progress", subject: name }, stallWords(name, stallMs));
    }
    stalled.clear();
    for (const name of hang) stalled.add(name);
    if (hang.length > 0 || startsTooLong()) return;
    if (notifier.watchdogMs !== undefined) notifier.alive();
    if (!isReady && !isStopping) notifier.extend(EXTEND_MS);
    changed();
  };
  const stop = (): void => {
    watched = undefined;
    hasBegun = true;
    isStopping = true;
    clearInterval(readyTimer);
    clearTimeout(statusTimer);
    notifier.stopping();
    notifier.status("stopping: what is under way ends, the rest is done at the next start");
  };
  if (signal.aborted) stop();
  else signal.addEventListener("abort", stop, { once: true });
  const tickMs = Math.min(TICK_MS_MAX, (notifier.watchdogMs ?? Infinity) / TICKS_A_PERIOD);
  // Not unreferenced: neither keeps a process from ending that has called `close`.
  const ticking = setInterval(tick, tickMs);

  return {
    watch: (supervised) => {
      if (isStopping) return;
      watched = supervised;
      hasBegun = true;
      refusal = undefined;
      progressOf.clear();
      isReady = false;
      readyTimer ??= setInterval(checkReady, READY_EVERY_MS);
      checkReady();
    },
    changed,
    reloading: () => notifier.reloading(),
    reloaded: (words) => {
      refusal = words;
      if (isReady) becomeReady();
    },
    longStep: () => {
      if (!isReady && !isStopping) notifier.extend(START_MS_MAX);
    },
    close: () => {
      isClosed = true;
      signal.removeEventListener("abort", stop);
      clearInterval(ticking);
      clearInterval(readyTimer);
      clearTimeout(statusTimer);
    },
  };
}

const nothing = (): void => undefined;
const NOBODY: Supervisor = {
  watch: nothing,
  changed: nothing,
  reloading: nothing,
  reloaded: nothing,
  longStep: nothing,
  close: nothing,
};

function notifierOfManager({ env, log }: SupervisorOptions): Notifier {
  return openNotifier({
    env,
    pid: process.pid,
    monotonicUs: () => process.hrtime.bigint() / 1000n,
    onSilent: (reason) => log.debug(`the service manager is told nothing: ${reason}`),
    onProblem: (error) => log.warn({ err: error }, "the service manager cannot be told anything any more"),
  });
}

function tooLongWords(): string {
  return `the start has taken ${duration(START_MS_MAX / 1000)}, and nothing tells whether it gets on: the service manager is asked for no more time, so that it starts the program again`;
}

function stallWords(name: string, stallMs: number): string {
  return `${name} has stood still for ${duration(stallMs / 1000)} although there is work: no more signs of life are sent, so that the service manager starts the program again`;
}
