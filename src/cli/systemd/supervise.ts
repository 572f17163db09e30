import type { Logger } from "pino";
import { openNotifier, type Notifier } from "../../system/notify.ts";
import { addSample, type Progress, type ProgressSample, stalledMs } from "../../system/progress.ts";
import { duration } from "../output/progress.ts";

/** The subject of a supervisor's reports. */
export interface Supervised {
  /** Whether startup is complete: everything listens, and the work is known. */
  isReady(): boolean;
  /** Status in one line. */
  words(): string;
  /** Samples, by name, of the parts whose stall means that the process hangs. */
  samples(): Readonly<Record<string, ProgressSample>>;
}

/** Reports to the service manager. Without one every call does nothing. */
export interface Supervisor {
  /** Starts reporting on this, and sends READY once it is ready. */
  watch(supervised: Supervised): void;
  /** Marks the status as changed. Cheap enough for thousands of calls a second. */
  changed(): void;
  /** Reports a reload. The manager waits until `reloaded`, or until the next watched program is ready. */
  reloading(): void;
  /** Ends a reload that started no other program. */
  reloaded(): void;
  /** Requests more time for a startup step that may block the loop for long. */
  longStep(): void;
  /** Stops reporting. */
  close(): void;
}

/**
 * Time without progress, in milliseconds, after which a part with work counts as hung. Exceeds every other timeout: a
 * document's conversion ends after one minute, a request after two.
 */
export const STALL_MS = 300_000;
/** Longest interval of keep-alives and status updates, in milliseconds; also the default. */
const TICK_MS_MAX = 20_000;
/** Keep-alives per watchdog period, so that a late one does not end the process. */
const TICKS_A_PERIOD = 3;
/** Shortest interval of status messages, in milliseconds: a first sync changes the status a thousand times a second. */
const STATUS_EVERY_MS = 1000;
/** Poll interval of readiness, in milliseconds. */
const READY_EVERY_MS = 100;
/** Extension that a startup in progress requests at each tick, in milliseconds: scanning a large tree takes long. */
const EXTEND_MS = 90_000;
/**
 * Longest time before `watch`, in milliseconds, during which no progress is visible. The longest step is the upgrade of a
 * store of a hundred gigabytes.
 */
export const START_MS_MAX = 3_600_000;

export interface SupervisorOptions {
  readonly env: NodeJS.ProcessEnv;
  readonly log: Logger;
  /** Aborted when the program stops. Sends STOPPING at once, and READY no more. */
  readonly signal: AbortSignal;
  /** A clock that stops while the machine sleeps. Default: `performance.now`. */
  readonly nowMs?: () => number;
  /** Default: the service manager that the environment names. */
  readonly notifier?: Notifier;
}

/** Opens a supervisor that reports to the service manager of this process. */
export function openSupervisor(options: SupervisorOptions): Supervisor {
  const { log, signal, nowMs = () => performance.now() } = options;
  const notifier = options.notifier ?? notifierOfManager(options);
  if (!notifier.hasListener) return SILENT;
  const hangs = openHangDetector(nowMs);
  let watched: Supervised | undefined;
  let isReady = false;
  const openedMs = nowMs();
  /** Set once something is watched, or the program stops. */
  let hasBegun = false;
  let isStopping = false;
  let isTooLong = false;
  let isClosed = false;
  let statusTimer: NodeJS.Timeout | undefined;
  let readyTimer: NodeJS.Timeout | undefined;

  const reportStatus = (): void => {
    statusTimer = undefined;
    if (watched !== undefined && !isClosed) notifier.status(watched.words());
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
  const startsTooLong = (): boolean => {
    if (hasBegun || nowMs() - openedMs < START_MS_MAX) return false;
    if (!isTooLong) log.error({ code: "start_too_long" }, tooLongWords());
    isTooLong = true;
    return true;
  };
  const tick = (): void => {
    notifier.retry();
    const { hanging, since } = hangs.sample(watched?.samples() ?? {});
    for (const name of since) log.error({ code: "no_progress", subject: name }, stallWords(name));
    if (hanging.length > 0 || startsTooLong()) return;
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
    notifier.status("stopping: requests in flight finish, the rest is done at the next start");
  };
  if (signal.aborted) stop();
  else signal.addEventListener("abort", stop, { once: true });
  const tickMs = Math.min(TICK_MS_MAX, (notifier.watchdogMs ?? Infinity) / TICKS_A_PERIOD);
  // Not unreferenced: `close` clears both timers.
  const ticking = setInterval(tick, tickMs);

  return {
    watch: (supervised) => {
      if (isStopping) return;
      watched = supervised;
      hasBegun = true;
      hangs.reset();
      isReady = false;
      readyTimer ??= setInterval(checkReady, READY_EVERY_MS);
      checkReady();
    },
    changed,
    reloading: () => notifier.reloading(),
    reloaded: () => {
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

/** Decides from samples which parts hang. */
interface HangDetector {
  /** Adds a sample of every part. Returns the parts that hang, and those of them that did not at the last sample. */
  sample(samples: Readonly<Record<string, ProgressSample>>): {
    readonly hanging: readonly string[];
    readonly since: readonly string[];
  };
  /** Forgets the samples. */
  reset(): void;
}

function openHangDetector(nowMs: () => number): HangDetector {
  const progressOf = new Map<string, Progress>();
  let before: readonly string[] = [];
  return {
    sample: (samples) => {
      const now = nowMs();
      for (const name of progressOf.keys()) if (!Object.hasOwn(samples, name)) progressOf.delete(name);
      for (const [name, sample] of Object.entries(samples))
        progressOf.set(name, addSample(progressOf.get(name), sample, now));
      const hanging = [...progressOf]
        .filter(([, progress]) => stalledMs(progress, now) >= STALL_MS)
        .map(([name]) => name);
      const since = hanging.filter((name) => !before.includes(name));
      before = hanging;
      return { hanging, since };
    },
    reset: () => progressOf.clear(),
  };
}

const nothing = (): void => undefined;
const SILENT: Supervisor = {
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
    onSilent: (reason) => log.debug(`no notifications to the service manager: ${reason}`),
    onProblem: (error) =>
      log.warn({ err: error }, "the service manager refuses notifications; none are sent any more"),
  });
}

function tooLongWords(): string {
  return `the start has taken ${duration(START_MS_MAX / 1000)}, and there is no sign of progress: kbsync asks the service manager for no more time, so that it restarts the program`;
}

function stallWords(name: string): string {
  return `${name} has made no progress for ${duration(STALL_MS / 1000)} although there is work: kbsync stops notifying the watchdog, so that the service manager restarts it`;
}
