import type { RelativePath, ScanEntry } from "../plan/model.ts";
import type { IgnoreRest } from "../rules/ignore-settling.ts";
import { openPathStates, type PathStates } from "./path-states.ts";

/** The clock and the alarm of the path states, and who waits for a check. */
export interface Agenda {
  readonly states: PathStates;
  /** Records that something happened at this path, or anywhere in the source. */
  hint(path: RelativePath | undefined): void;
  /** Schedules a check of the whole source. */
  scanAt(atMs: number): void;
  /** Schedules a check of the whole source for when a changed ignore file has settled. Nothing is idle before. */
  awaitIgnoreFile(rest: IgnoreRest): void;
  /** Schedules another check of a path: once it has rested, or at a time. */
  checkAgain(path: RelativePath, atMs?: number): void;
  /** The same for a file that changed while it was read: later, if that happens repeatedly. */
  checkTorn(path: RelativePath): void;
  /** Has a path read again at a time, after its job. */
  rereadAt(path: RelativePath, atMs: number): void;
  /** Records that a file's job has ended. */
  end(entry: ScanEntry): void;
  /**
   * Checks a path, or the whole source, now. A check that began later has ended when `answered` has reached the
   * returned number.
   */
  ask(below: RelativePath | undefined): number;
  /** The newest number given out: what a check that begins now will have answered. */
  asked(): number;
  /** Records the end of a check that began when `asked` was this. */
  answer(asked: number): void;
  answered(): number;
  /** Wakes the loop at a time, or sooner. */
  wakeAt(atMs: number): void;
  /** Resolves when the loop is due. */
  time(): Promise<void>;
  /** Wakes the loop now, and clears the timer. */
  stop(): void;
}

export interface AgendaOptions {
  /** How long a path must have rested. */
  readonly settleMs: number;
  readonly now: () => number;
  /** One pass: a check that is due much later is left to the next. */
  readonly once: boolean;
  /** Ends the job of a file that is being sent, unless its request has left. */
  readonly withdraw?: (path: RelativePath) => void;
}

/** A single pass leaves checks that are due later than this to the next. */
const ONCE_PATIENCE_MS = 5000;

/** Opens an empty agenda. */
export function openAgenda({ settleMs, now, once, withdraw }: AgendaOptions): Agenda {
  const alarm = openAlarm(now);
  const states = openPathStates(settleMs, (atMs) => alarm.set(atMs));
  let asked = 0;
  let answered = 0;

  const isInTime = (atMs: number): boolean => !once || atMs <= now() + ONCE_PATIENCE_MS;
  const checkAgain = (path: RelativePath, atMs = now() + settleMs): void => {
    if (isInTime(atMs)) states.checkAgain(path, atMs, now());
  };
  const hint = (path: RelativePath | undefined): void => {
    const nowMs = now();
    if (path === undefined) states.checkAll(nowMs, nowMs);
    else {
      states.event(path, nowMs);
      if (states.isSending(path) && !states.isUnresting(path)) withdraw?.(path);
    }
  };

  return {
    states,
    hint,
    scanAt: (atMs) => states.checkAll(atMs, now()),
    awaitIgnoreFile: ({ atMs, isOverdue }) => states.checkAll(atMs, now(), !isOverdue),
    checkAgain,
    checkTorn: (path) => {
      states.torn(path, now());
      checkAgain(path);
    },
    rereadAt: (path, atMs) => {
      if (isInTime(atMs)) states.rereadAt(path, atMs);
    },
    end: (entry) => states.end(entry, now()),
    ask: (below) => {
      asked += 1;
      if (below === undefined) hint(undefined);
      else states.ask(below, now());
      return asked;
    },
    asked: () => asked,
    answer: (upTo) => {
      answered = upTo;
    },
    answered: () => answered,
    wakeAt: (atMs) => alarm.set(atMs),
    time: () => alarm.fires(),
    stop: () => alarm.stop(),
  };
}

/** One timer for a loop. It fires at the earliest time that was set. */
interface Alarm {
  set(atMs: number): void;
  /** Resolves when it fires; at once if it fired since the last call. */
  fires(): Promise<void>;
  /** Fires, and clears the timer. */
  stop(): void;
}

/** Makes an alarm without a time. */
export function openAlarm(now: () => number): Alarm {
  let timer: { readonly handle: NodeJS.Timeout; readonly firesMs: number } | undefined;
  let wake: (() => void) | undefined;
  let fired = false;
  let stopped = false;
  const fire = (): void => {
    timer = undefined;
    fired = true;
    wake?.();
  };
  return {
    set: (atMs) => {
      const delayMs = Math.max(0, atMs - now());
      // By the timers' own clock: the other one may have been set forward since the timer was set.
      const firesMs = performance.now() + delayMs;
      if (stopped || (timer !== undefined && timer.firesMs <= firesMs)) return;
      clearTimeout(timer?.handle);
      timer = { handle: setTimeout(fire, delayMs), firesMs };
    },
    fires: async () => {
      if (!fired) {
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
      wake = undefined;
      fired = false;
    },
    stop: () => {
      stopped = true;
      clearTimeout(timer?.handle);
      fire();
    },
  };
}
