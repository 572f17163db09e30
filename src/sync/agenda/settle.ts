import type { RelativePath, ScanEntry } from "../plan/model.ts";
import { CEILING_MS } from "../plan/timing.ts";

/** Paths to check, each once it has rested. Reads no clock: times are arguments. */
export interface DirtySet {
  /** Records that something happened at a path. It is due when nothing more has happened for the settle time. */
  mark(path: RelativePath, nowMs: number): void;
  /**
   * Makes the whole source due at `atMs`. In the future this is a retry, unless it `isWork` that must end before
   * anything is idle.
   */
  markAll(atMs: number, nowMs: number, isWork?: boolean): void;
  /**
   * Makes a path due at `atMs`, or sooner if it is marked for that. A time further off than the settle time is a retry.
   */
  again(path: RelativePath, atMs: number, nowMs: number): void;
  /** Removes and returns what is due. */
  take(nowMs: number): Due | undefined;
  /** Returns when something is due next. */
  nextDueMs(): number | undefined;
  /**
   * Reports whether a file may be read, by its times at `wallMs`, the system's clock, which unlike `nowMs` may have
   * been set back: size and modification time have been the same for the settle time, or EMPTY_MS at least for an empty
   * file. If not, the path is marked again.
   */
  rested(entry: ScanEntry, nowMs: number, forced: boolean, wallMs?: number): boolean;
  /** Records that a file changed while it was read. If that happens repeatedly, `rested` makes it wait. */
  torn(path: RelativePath, nowMs: number): void;
  /**
   * Records that the job of a file has ended, whether it was sent or not: what happens soon after shows whether the
   * file grows.
   */
  ended(path: RelativePath, nowMs: number): void;
  /** Reports whether nothing is marked except retries and paths in `but`. */
  isQuiet(but?: ReadonlyMap<RelativePath, unknown>): boolean;
  /** Returns the marked paths, including retries. */
  marked(): Iterable<RelativePath>;
  /** `asRetry: false` excludes retries. */
  isMarked(path: RelativePath, which?: { readonly asRetry: false }): boolean;
  /**
   * Returns files that are written to continually and are not read for some seconds, including those of the last
   * `take`. They are few.
   */
  heldBack(): Iterable<RelativePath>;
  /** Since when the oldest mark exists that is not a retry. */
  oldestMs(): number | undefined;
}

export interface Due {
  readonly all: boolean;
  readonly paths: readonly RelativePath[];
  /** Those of `paths` that never rest. They are read as they are. */
  readonly forced: ReadonlySet<RelativePath>;
}

/** A file that was found unrested or torn this often within the ceiling time counts as written to without a pause. */
const BURST = 8;

/**
 * A file without a byte must have rested this long. A program that rewrites a file empties it first, and on a busy
 * machine its first bytes follow hundreds of milliseconds later.
 */
export const EMPTY_MS = 1000;

/**
 * A file found larger this often, each time soon after it was sent, counts as one that is appended to, such as a log.
 */
const APPENDS = 2;
const APPEND_GAP_MS = 15_000;
/**
 * Minimum rest of an appended file, which is sent whole each time. It is read when it has rested for longer than
 * between two appends, or once in the ceiling time. The rest is twice the longest gap and this, because gaps differ and
 * coarse file times lengthen an apparent rest by up to two seconds.
 */
const APPENDED_REST_MS = 4000;

/** Number of files that are remembered as unrested after that is long ago. */
const RECENT_MAX = 1000;

/** Whatever the settle time, a check that is due within this time is not a retry. */
const SOON_MS = 1000;

interface Mark {
  firstMs: number;
  retry: boolean;
  dueMs: number;
}

/** Makes an empty set. `settleMs` is how long a path must have rested. */
export function openDirtySet(settleMs: number): DirtySet {
  const marks = new Map<RelativePath, Mark>();
  /** Files as they were found unrested, from `firstMs` to `lastMs`. */
  let restless = new Map<
    RelativePath,
    { sizeBytes: number; mtimeMs: number; sinceMs: number; firstMs: number; lastMs: number }
  >();
  /** How often a file was found unrested or torn since `firstMs`. */
  let recent = new Map<RelativePath, { count: number; firstMs: number; lastMs: number }>();
  /**
   * Fresh files as they were when they were released for reading. `appends`: how often one was larger than before;
   * `gapMs`: the longest gap between two of its appends.
   */
  let read = new Map<
    RelativePath,
    { sizeBytes: number; mtimeMs: number; appends: number; gapMs: number; lastMs: number }
  >();
  const heldBack = new Set<RelativePath>();
  let forgetAbove = RECENT_MAX;
  let allAtMs: number | undefined;
  let allRetry = false;
  /** Number of marks that are not retries. */
  let fresh = 0;

  /**
   * Returns until when a file is not read because it is written to all the time. Checking it is cheap and never waits.
   */
  const heldBackMs = (path: RelativePath, nowMs: number): number | undefined => {
    const history = recent.get(path);
    if (history === undefined || history.count < BURST) return undefined;
    const untilMs = history.firstMs + CEILING_MS;
    return nowMs < untilMs ? untilMs : undefined;
  };
  const remember = (path: RelativePath, nowMs: number): void => {
    const history = recent.get(path);
    if (history === undefined || nowMs - history.firstMs >= CEILING_MS) {
      // A file held back until just now that is still written to is held back again.
      const goesOn =
        history !== undefined && history.count >= BURST && nowMs - history.lastMs < 1.5 * CEILING_MS;
      recent.set(path, { count: goesOn ? BURST : 1, firstMs: nowMs, lastMs: nowMs });
      if (Math.max(recent.size, restless.size) > forgetAbove) forgetOld(nowMs);
    } else {
      history.count += 1;
      history.lastMs = nowMs;
    }
  };
  const forgetOld = (nowMs: number): void => {
    recent = new Map([...recent].filter(([, { lastMs }]) => nowMs - lastMs < 2 * CEILING_MS));
    restless = new Map([...restless].filter(([, each]) => isCurrent(each, nowMs)));
    read = new Map([...read].filter(([, { lastMs }]) => nowMs - lastMs < 2 * CEILING_MS));
    forgetAbove = Math.max(RECENT_MAX, 2 * Math.max(recent.size, restless.size, read.size));
  };
  /** Reports false for a file that disappeared before it rested: a later one of its name is another. */
  const isCurrent = ({ lastMs }: { readonly lastMs: number }, nowMs: number): boolean =>
    nowMs - lastMs < 2 * Math.max(CEILING_MS, settleMs);

  /** Returns how long a due file must have rested because it is appended to: it grew repeatedly, and still grows. */
  const appendedRestMs = ({ path, sizeBytes }: ScanEntry, nowMs: number): number | undefined => {
    const before = read.get(path);
    const isAppended =
      before !== undefined &&
      before.appends >= APPENDS &&
      sizeBytes > before.sizeBytes &&
      nowMs - before.lastMs < 2 * CEILING_MS;
    return isAppended ? Math.max(settleMs, APPENDED_REST_MS + 2 * before.gapMs) : undefined;
  };
  /** `restedMs`: how long a released file has rested; `isAppended`: it was appended to. */
  const noteRead = (
    { path, sizeBytes, mtimeMs }: ScanEntry,
    { nowMs, restedMs, isAppended }: Readonly<{ nowMs: number; restedMs: number; isAppended: boolean }>,
  ): void => {
    const before = read.get(path);
    const gapMsMax = settleMs + APPEND_GAP_MS;
    if (before === undefined && Math.abs(restedMs) > gapMsMax) return;
    const sinceMs = nowMs - (before?.lastMs ?? -Infinity);
    const isSoon = sinceMs <= gapMsMax;
    // A version that was released and not sent comes again. It says nothing about growth.
    const isSame = before?.sizeBytes === sizeBytes && isSoon;
    // A file that rested longer than that is complete for now.
    const goesOn = isSoon || (isAppended && restedMs <= gapMsMax);
    const isAppend = before !== undefined && sizeBytes > before.sizeBytes && goesOn;
    // Sending may take longer than a gap. Then only the file's times show how far its appends are apart.
    const apartMs = isAppend ? Math.min(mtimeMs - before.mtimeMs, gapMsMax) : 0;
    const gapMs = isSoon ? Math.max(sinceMs, apartMs) : restedMs;
    read.set(path, {
      sizeBytes,
      mtimeMs,
      appends: isSame ? before.appends : isAppend ? before.appends + 1 : 0,
      gapMs: isSame ? before.gapMs : isAppend ? Math.max(before.gapMs, gapMs) : 0,
      lastMs: nowMs,
    });
    if (read.size > forgetAbove) forgetOld(nowMs);
  };

  /** Postpones the check of a file that must not be read now. */
  const holdBack = (path: RelativePath, atMs: number, nowMs: number): void => {
    if (isRetry(atMs, nowMs)) heldBack.add(path);
    again(path, atMs, nowMs);
  };

  /** Turns a retry into a mark like any other. */
  const begin = (mark: Mark, nowMs: number): void => {
    mark.retry = false;
    mark.firstMs = nowMs;
    fresh += 1;
  };
  const isRetry = (atMs: number, nowMs: number): boolean => atMs > nowMs + Math.max(settleMs, SOON_MS);
  const again = (path: RelativePath, atMs: number, nowMs: number): void => {
    const retry = isRetry(atMs, nowMs);
    const mark = marks.get(path);
    if (mark === undefined) {
      marks.set(path, { firstMs: nowMs, dueMs: atMs, retry });
      if (!retry) fresh += 1;
      return;
    }
    mark.dueMs = Math.min(mark.dueMs, atMs);
    if (mark.retry && !retry) begin(mark, nowMs);
  };

  return {
    mark: (path, nowMs) => {
      let mark = marks.get(path);
      if (mark === undefined) {
        mark = { firstMs: nowMs, dueMs: 0, retry: true };
        marks.set(path, mark);
      }
      if (mark.retry) begin(mark, nowMs);
      mark.dueMs = Math.min(nowMs + settleMs, mark.firstMs + CEILING_MS);
    },
    markAll: (atMs, nowMs, isWork = false) => {
      allRetry = !isWork && atMs > nowMs && (allAtMs === undefined || allRetry);
      allAtMs = Math.min(allAtMs ?? Infinity, atMs);
    },
    again,
    take: (nowMs) => {
      for (const path of heldBack) if (!marks.has(path)) heldBack.delete(path);
      const all = allAtMs !== undefined && allAtMs <= nowMs;
      const paths: RelativePath[] = [];
      const forced = new Set<RelativePath>();
      for (const [path, mark] of marks) {
        if (mark.dueMs > nowMs) continue;
        marks.delete(path);
        if (!mark.retry) fresh -= 1;
        paths.push(path);
        if (!mark.retry && nowMs - mark.firstMs >= CEILING_MS) forced.add(path);
      }
      if (all) allAtMs = undefined;
      return all || paths.length > 0 ? { all, paths, forced } : undefined;
    },
    nextDueMs: () => {
      let next = allAtMs;
      for (const { dueMs } of marks.values()) if (next === undefined || dueMs < next) next = dueMs;
      return next;
    },
    rested: (entry, nowMs, forced, wallMs = nowMs) => {
      const { path, sizeBytes, mtimeMs } = entry;
      const found = restless.get(path);
      const before = found !== undefined && isCurrent(found, nowMs) ? found : undefined;
      const same = before?.sizeBytes === sizeBytes && before.mtimeMs === mtimeMs;
      const ageMs = wallMs - mtimeMs;
      const appendedMs = appendedRestMs(entry, nowMs);
      const isAppended = appendedMs !== undefined;
      const restMs =
        appendedMs ?? (sizeBytes === 0 && settleMs > 0 ? Math.max(settleMs, EMPTY_MS) : settleMs);
      // A modification time in the future proves nothing. Then only a second check does.
      const old = ageMs >= restMs || (settleMs === 0 && !isAppended);
      const seenLong = same && nowMs - before.sinceMs >= restMs;
      const tooLong = before !== undefined && nowMs - before.firstMs >= CEILING_MS;
      const heldUntilMs = heldBackMs(path, nowMs);
      if (((old || seenLong) && heldUntilMs === undefined) || tooLong || forced) {
        restless.delete(path);
        heldBack.delete(path);
        noteRead(entry, { nowMs, restedMs: seenLong ? nowMs - before.sinceMs : ageMs, isAppended });
        return true;
      }
      if (old || seenLong) {
        holdBack(path, heldUntilMs ?? nowMs, nowMs);
        return false;
      }
      // An appended file has a rest of its own, which ends soon after the last append.
      if (!isAppended && !same) remember(path, nowMs);
      const sinceMs = same ? before.sinceMs : nowMs;
      restless.set(path, { sizeBytes, mtimeMs, sinceMs, firstMs: before?.firstMs ?? nowMs, lastMs: nowMs });
      const waitMs = ageMs >= 0 ? restMs - ageMs : restMs;
      holdBack(path, nowMs + Math.ceil(waitMs), nowMs);
      return false;
    },
    torn: remember,
    ended: (path, nowMs) => {
      const before = read.get(path);
      if (before !== undefined) before.lastMs = nowMs;
    },
    isQuiet: (but) => {
      if (allAtMs !== undefined && !allRetry) return false;
      if (fresh === 0 || but === undefined) return fresh === 0;
      for (const [path, { retry }] of marks) if (!retry && !but.has(path)) return false;
      return true;
    },
    marked: () => marks.keys(),
    isMarked: (path, which) => (which === undefined ? marks.has(path) : marks.get(path)?.retry === false),
    heldBack: () => heldBack,
    oldestMs: () => {
      let oldest: number | undefined;
      for (const { retry, firstMs } of marks.values())
        if (!retry && (oldest === undefined || firstMs < oldest)) oldest = firstMs;
      return oldest;
    },
  };
}
