import type { RelativePath, ScanEntry } from "../../plan/model.ts";
import type { IgnoreRest } from "../../scan/rules/ignore-settling.ts";
import { openPathStates } from "./path-states.ts";

/** The clock and the alarm of the path states, and who waits for a check. */
export type Agenda = ReturnType<typeof openAgenda>;

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
export function openAgenda({ settleMs, now, once, withdraw }: AgendaOptions) {
  const alarm = openAlarm(now);
  const states = openPathStates(settleMs, (atMs) => alarm.set(atMs));
  let asked = 0;
  let answered = 0;

  const isInTime = (atMs: number): boolean => !once || atMs <= now() + ONCE_PATIENCE_MS;
  /** Schedules another check of a path: once it has rested, or at a time. */
  const checkAgain = (path: RelativePath, atMs = now() + settleMs): void => {
    if (isInTime(atMs)) states.checkAgain(path, atMs, now());
  };
  /** Records that something happened at this path, or anywhere in the source. */
  const hint = (path: RelativePath | undefined): void => {
    const nowMs = now();
    if (path === undefined) states.checkAll(nowMs, nowMs);
    else {
      states.event(path, nowMs);
      if (states.isSending(path) && !states.isOverdue(path)) withdraw?.(path);
    }
  };

  return {
    states,
    hint,
    /** Schedules a check of the whole source. */
    scanAt: (atMs: number): void => states.checkAll(atMs, now()),
    /** Schedules a check of the whole source for when a changed ignore file has settled. Nothing is idle before. */
    awaitIgnoreFile: ({ atMs, isOverdue }: IgnoreRest): void => states.checkAll(atMs, now(), !isOverdue),
    checkAgain,
    /** Checks again a file that changed while it was read: later, if that happens repeatedly. */
    checkTorn: (path: RelativePath): void => {
      states.torn(path, now());
      checkAgain(path);
    },
    /** Has a path read again at a time, after its job. */
    rereadAt: (path: RelativePath, atMs: number): void => {
      if (isInTime(atMs)) states.rereadAt(path, atMs);
    },
    /** Reports whether something happened at the path since its job was planned. */
    isOutdated: states.isOutdated,
    /** Records that the service accepted the path's version, whose result no longer matters. */
    sent: states.sent,
    /** Records that a file's job has ended. */
    end: (entry: ScanEntry): void => states.end(entry, now()),
    /**
     * Checks a path, or the whole source, now. A check that began later has ended when `answered` has reached the
     * returned number.
     */
    ask: (below: RelativePath | undefined): number => {
      asked += 1;
      if (below === undefined) hint(undefined);
      else states.ask(below, now());
      return asked;
    },
    /** The newest number given out: what a check that begins now will have answered. */
    asked: (): number => asked,
    /** Records the end of a check that began when `asked` was this. */
    answer: (upTo: number): void => {
      answered = upTo;
    },
    answered: (): number => answered,
    /** Wakes the loop at a time, or sooner. */
    wakeAt: (atMs: number): void => alarm.set(atMs),
    /** Resolves when the loop is due. */
    time: (): Promise<void> => alarm.fires(),
    /** Wakes the loop now, and clears the timer. */
    stop: (): void => alarm.stop(),
  };
}

/** Opens the timer of a loop, without a time. It fires at the earliest time that is set. */
export function openAlarm(now: () => number) {
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
    set: (atMs: number): void => {
      const delayMs = Math.max(0, atMs - now());
      // By the timers' own clock: the other one may have been set forward since the timer was set.
      const firesMs = performance.now() + delayMs;
      if (stopped || (timer !== undefined && timer.firesMs <= firesMs)) return;
      clearTimeout(timer?.handle);
      timer = { handle: setTimeout(fire, delayMs), firesMs };
    },
    /** Resolves when it fires; at once if it fired since the last call. */
    fires: async (): Promise<void> => {
      if (!fired) {
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
      wake = undefined;
      fired = false;
    },
    /** Fires, and clears the timer. */
    stop: (): void => {
      stopped = true;
      clearTimeout(timer?.handle);
      fire();
    },
  };
}
