import { openAlarm } from "./alarm.ts";
import type { RelativePath } from "../plan/model.ts";
import type { IgnoreRest } from "../rules/ignore-settling.ts";
import { openDirtySet, type DirtySet } from "./settle.ts";
import type { InFlight } from "./in-flight.ts";

/** What of a source must be checked, and when; and who waits for a check. */
export interface Agenda {
  readonly dirty: DirtySet;
  /** Records that something happened at this path, or anywhere in the source. A path with a job is checked after it. */
  hint(path: RelativePath | undefined): void;
  /** Schedules a check of the whole source. */
  scanAt(atMs: number): void;
  /** Schedules a check of the whole source for when a changed ignore file has settled. Nothing is idle before. */
  awaitIgnoreFile(rest: IgnoreRest): void;
  /** Schedules another check of a path: once it has rested, or at a time. */
  checkAgain(path: RelativePath, atMs?: number): void;
  /** The same for a file that changed while it was read: later, if that happens repeatedly. */
  checkTorn(path: RelativePath): void;
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
  readonly inFlight: Pick<InFlight, "has" | "outdate">;
  readonly now: () => number;
  /** One pass: a check that is due much later is left to the next. */
  readonly once: boolean;
}

/** A single pass leaves checks that are due later than this to the next. */
const ONCE_PATIENCE_MS = 5000;

/** Opens an empty agenda. */
export function openAgenda({ settleMs, inFlight, now, once }: AgendaOptions): Agenda {
  const dirty = openDirtySet(settleMs);
  const alarm = openAlarm(now);
  let asked = 0;
  let answered = 0;

  const hint = (path: RelativePath | undefined): void => {
    const nowMs = now();
    if (path === undefined) dirty.markAll(nowMs, nowMs);
    else if (inFlight.has(path)) inFlight.outdate(path);
    else dirty.mark(path, nowMs);
    alarm.set(path === undefined ? nowMs : nowMs + settleMs);
  };
  const checkAgain = (path: RelativePath, atMs = now() + settleMs): void => {
    if (once && atMs > now() + ONCE_PATIENCE_MS) return;
    if (inFlight.has(path) && atMs <= now() + settleMs) {
      inFlight.outdate(path);
      return;
    }
    dirty.again(path, atMs, now());
    alarm.set(atMs);
  };

  return {
    dirty,
    hint,
    scanAt: (atMs) => {
      dirty.markAll(atMs, now());
      alarm.set(atMs);
    },
    awaitIgnoreFile: ({ atMs, isOverdue }) => {
      dirty.markAll(atMs, now(), !isOverdue);
      alarm.set(atMs);
    },
    checkAgain,
    checkTorn: (path) => {
      dirty.torn(path, now());
      checkAgain(path);
    },
    ask: (below) => {
      asked += 1;
      if (below === undefined) hint(undefined);
      else if (inFlight.has(below)) inFlight.outdate(below);
      // Also for a path with a job, so that a check is due which answers.
      if (below !== undefined) dirty.again(below, now(), now());
      alarm.set(now());
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
