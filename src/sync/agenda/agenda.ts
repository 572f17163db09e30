import { openAlarm } from "./alarm.ts";
import type { RelativePath } from "../plan/model.ts";
import type { IgnoreRest } from "../rules/ignore-settling.ts";
import { openDirtySet, type DirtySet } from "./settle.ts";
import type { UnderWay } from "./under-way.ts";

/** What of a source is to be looked at, and when; and who waits for a look. */
export interface Agenda {
  readonly dirty: DirtySet;
  /** Something happened at this path, or anywhere in the source. One that has a job is looked at after it. */
  hint(path: RelativePath | undefined): void;
  /** Has the whole source looked at, at a time. */
  lookAt(atMs: number): void;
  /** A changed ignore file will have settled then: the whole source is looked at, and nothing is idle before. */
  awaitIgnoreFile(rest: IgnoreRest): void;
  /** Looks at a path again: when it has had time to rest, or at a time. */
  lookAgain(path: RelativePath, atMs?: number): void;
  /** The same for a file that changed while it was read: later, if that happens again and again. */
  lookAgainTorn(path: RelativePath): void;
  /** Looks at a path, or the whole source, now. A look that began after it has ended when `answered` has reached the number. */
  ask(below: RelativePath | undefined): number;
  /** The newest number given out: what a look that begins now will have answered. */
  asked(): number;
  /** A look has ended that began when `asked` was this. */
  answer(asked: number): void;
  answered(): number;
  /** Has the loop go on at a time, or sooner. */
  wakeAt(atMs: number): void;
  /** Resolves when it is time to go on. */
  time(): Promise<void>;
  /** Has the loop go on now, and holds no timer any more. */
  stop(): void;
}

export interface AgendaOptions {
  /** How long a path must have rested. */
  readonly settleMs: number;
  readonly underWay: Pick<UnderWay, "has" | "outdate">;
  readonly now: () => number;
  /** One pass: what is to be looked at much later is left to the next. */
  readonly once: boolean;
}

/** In one pass, what is to be looked at later than this is left to the next. */
const ONCE_PATIENCE_MS = 5000;

/** Opens an agenda with nothing on it. */
export function openAgenda({ settleMs, underWay, now, once }: AgendaOptions): Agenda {
  const dirty = openDirtySet(settleMs);
  const alarm = openAlarm(now);
  let asked = 0;
  let answered = 0;

  const hint = (path: RelativePath | undefined): void => {
    const nowMs = now();
    if (path === undefined) dirty.markAll(nowMs, nowMs);
    else if (underWay.has(path)) underWay.outdate(path);
    else dirty.mark(path, nowMs);
    alarm.set(path === undefined ? nowMs : nowMs + settleMs);
  };
  const lookAgain = (path: RelativePath, atMs = now() + settleMs): void => {
    if (once && atMs > now() + ONCE_PATIENCE_MS) return;
    if (underWay.has(path) && atMs <= now() + settleMs) {
      underWay.outdate(path);
      return;
    }
    dirty.again(path, atMs, now());
    alarm.set(atMs);
  };

  return {
    dirty,
    hint,
    lookAt: (atMs) => {
      dirty.markAll(atMs, now());
      alarm.set(atMs);
    },
    awaitIgnoreFile: ({ atMs, isOverdue }) => {
      dirty.markAll(atMs, now(), !isOverdue);
      alarm.set(atMs);
    },
    lookAgain,
    lookAgainTorn: (path) => {
      dirty.torn(path, now());
      lookAgain(path);
    },
    ask: (below) => {
      asked += 1;
      if (below === undefined) hint(undefined);
      else if (underWay.has(below)) underWay.outdate(below);
      // Also one that has a job, so that a look is due which answers.
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
    time: () => alarm.rings(),
    stop: () => alarm.stop(),
  };
}
