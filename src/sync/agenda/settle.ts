import type { RelativePath, ScanEntry } from "../plan/model.ts";
import { CEILING_MS, UNREST_MS_MAX, VERSION_GAP_MS } from "../plan/timing.ts";
import type { EndedJob } from "./jobs.ts";

/**
 * Decides when a file has rested and may be read, from what earlier checks found at its path. What it remembers is
 * evidence about files, not the state of a path. Reads no clock: times are arguments.
 */
export type RestDetector = ReturnType<typeof openRestDetector>;

/** A file that was torn this often within the ceiling time counts as written to without a pause. */
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

/** A file of which a version was dropped before it was sent, because it changed again. */
const NOT_FOUND = { sizeBytes: -1, mtimeMs: -1, grows: false };

/** Number of files that are remembered as unrested after that is long ago. */
const RECENT_MAX = 1000;

/** A file as it was last found unrested, since `sinceMs`. It was found so from `firstMs` to `lastMs`. */
interface Unrested {
  readonly sizeBytes: number;
  readonly mtimeMs: number;
  readonly sinceMs: number;
  readonly firstMs: number;
  readonly lastMs: number;
  /** It had grown each time: it may be a copy under way. */
  readonly grows: boolean;
}

/** Opens a detector that knows no file. `settleMs` is how long a file must have rested. */
export function openRestDetector(settleMs: number) {
  let restless = new Map<RelativePath, Unrested>();
  /** Since when files that may be read had been unrested, until their job has ended. */
  let released = new Map<RelativePath, number>();
  const versions = openVersions(settleMs);
  const torn = openTorn();
  const appends = openAppends(settleMs);
  let forgetAbove = RECENT_MAX;

  const forgetOld = (nowMs: number): void => {
    torn.forgetOld(nowMs);
    restless = new Map([...restless].filter(([, each]) => isCurrent(each, nowMs)));
    released = new Map([...released].filter(([, firstMs]) => nowMs - firstMs < 2 * CEILING_MS));
    appends.forgetOld(nowMs);
    forgetAbove = Math.max(RECENT_MAX, 2 * Math.max(torn.size(), restless.size, appends.size()));
  };
  /** Reports false for a file that disappeared before it rested: a later one of its name is another. */
  const isCurrent = ({ lastMs }: { readonly lastMs: number }, nowMs: number): boolean =>
    nowMs - lastMs < 2 * Math.max(CEILING_MS, settleMs);

  const noteRestless = (path: RelativePath, found: Unrested): void => {
    restless.set(path, found);
    if (restless.size > forgetAbove) forgetOld(found.lastMs);
  };
  return {
    /**
     * Returns when to check a file again; undefined: it may be read, by its times at `wallMs`, the system's clock, which
     * unlike `nowMs` may have been set back: size and modification time have been the same for the settle time, or
     * EMPTY_MS at least for an empty file. `isUnresting`: it has been written to for too long, and may be read as it is.
     */
    restsAtMs: (
      entry: ScanEntry,
      nowMs: number,
      wallMs: number = nowMs,
    ): { readonly atMs: number | undefined; readonly isUnresting: boolean } => {
      const { path, sizeBytes, mtimeMs } = entry;
      const found = restless.get(path);
      const before = found !== undefined && isCurrent(found, nowMs) ? found : undefined;
      const same = before?.sizeBytes === sizeBytes && before.mtimeMs === mtimeMs;
      const ageMs = wallMs - mtimeMs;
      const appendedMs = appends.restMs(entry, nowMs);
      const isAppended = appendedMs !== undefined;
      const restMs =
        appendedMs ?? (sizeBytes === 0 && settleMs > 0 ? Math.max(settleMs, EMPTY_MS) : settleMs);
      // A modification time in the future proves nothing. Then only a second check does.
      const old = ageMs >= restMs || (settleMs === 0 && !isAppended);
      const seenLong = same && nowMs - before.sinceMs >= restMs;
      const hasRested = old || seenLong;
      const unrestMsMax = isAppended || before?.grows === true ? CEILING_MS : UNREST_MS_MAX + settleMs;
      const isUnresting = before !== undefined && nowMs - before.firstMs >= unrestMsMax;
      const heldUntilMs = Math.max(nowMs, torn.heldUntilMs(path), versions.nextMs(path));
      if ((hasRested || isUnresting) && heldUntilMs <= nowMs) {
        restless.delete(path);
        if (before !== undefined) released.set(path, before.firstMs);
        appends.released(entry, { nowMs, restedMs: seenLong ? nowMs - before.sinceMs : ageMs, isAppended });
        if (appends.size() > forgetAbove) forgetOld(nowMs);
        return { atMs: undefined, isUnresting };
      }
      if (hasRested) return { atMs: heldUntilMs, isUnresting };
      const sinceMs = same ? before.sinceMs : nowMs;
      const firstMs = before?.firstMs ?? nowMs;
      const grows = same
        ? before.grows
        : before === undefined || (before.grows && sizeBytes > before.sizeBytes);
      noteRestless(path, { sizeBytes, mtimeMs, sinceMs, firstMs, lastMs: nowMs, grows });
      const waitMs = ageMs >= 0 ? restMs - ageMs : restMs;
      return { atMs: Math.max(heldUntilMs, nowMs + Math.ceil(waitMs)), isUnresting };
    },
    /** Records that a file changed while it was read. If that happens repeatedly, it is read later. */
    torn: (path: RelativePath, nowMs: number): void => {
      torn.add(path, nowMs);
      if (torn.size() > forgetAbove) forgetOld(nowMs);
    },
    /** Records that a file may have changed. */
    changed: appends.changed,
    /**
     * Records that the job of a file has ended, whether it was sent or not: what happens soon after shows whether the
     * file grows, and the next version follows after a gap.
     */
    ended: (path: RelativePath, nowMs: number, job?: EndedJob): void => {
      appends.ended(path, nowMs);
      const firstMs = released.get(path) ?? nowMs;
      released.delete(path);
      if (job?.isSent === true) versions.sent(path, nowMs);
      else if (job?.isOutdated === true)
        noteRestless(path, { ...NOT_FOUND, sinceMs: nowMs, firstMs, lastMs: nowMs });
    },
  };
}

/**
 * Bounds the rate of a file's versions: one every VERSION_GAP_MS. One of them may come early, so that an edit does not
 * wait because a first sync has just sent the file.
 */
function openVersions(settleMs: number) {
  /** When the versions of a file will have taken no more than their time. From then on it is as if none was sent. */
  const evenMs = new Map<RelativePath, number>();
  return {
    sent: (path: RelativePath, nowMs: number): void => {
      // A settle time of zero requires no rest.
      if (settleMs === 0) return;
      for (const [each, atMs] of evenMs) {
        if (nowMs < atMs) break;
        evenMs.delete(each);
      }
      const fromMs = Math.max(nowMs, evenMs.get(path) ?? -Infinity);
      // The order is that of the last versions, which is nearly that of these times.
      evenMs.delete(path);
      evenMs.set(path, fromMs + VERSION_GAP_MS);
    },
    /** Returns when the next version may be sent; -Infinity: at any time. */
    nextMs: (path: RelativePath): number => (evenMs.get(path) ?? -Infinity) - VERSION_GAP_MS,
  };
}

/** Files that changed while they were read. */
function openTorn() {
  /** How often a file was torn since `firstMs`. */
  let recent = new Map<RelativePath, { count: number; firstMs: number; lastMs: number }>();
  return {
    add: (path: RelativePath, nowMs: number): void => {
      const history = recent.get(path);
      if (history === undefined || nowMs - history.firstMs >= CEILING_MS) {
        // A file held back until just now that is still written to is held back again.
        const goesOn =
          history !== undefined && history.count >= BURST && nowMs - history.lastMs < 1.5 * CEILING_MS;
        recent.set(path, { count: goesOn ? BURST : 1, firstMs: nowMs, lastMs: nowMs });
      } else {
        history.count += 1;
        history.lastMs = nowMs;
      }
    },
    /**
     * Returns until when a file is not read because it is written to all the time; -Infinity: it may be read. Checking it
     * is cheap and never waits.
     */
    heldUntilMs: (path: RelativePath): number => {
      const history = recent.get(path);
      return history === undefined || history.count < BURST ? -Infinity : history.firstMs + CEILING_MS;
    },
    size: (): number => recent.size,
    forgetOld: (nowMs: number): void => {
      recent = new Map([...recent].filter(([, { lastMs }]) => nowMs - lastMs < 2 * CEILING_MS));
    },
  };
}

/** Files that are appended to, by how they grew between the times at which they were released for reading. */
function openAppends(settleMs: number) {
  /**
   * Fresh files as they were when they were released for reading. `appends`: how often one was larger than before;
   * `gapMs`: the longest gap between two of its appends; `nextMs`: when it may have changed since. It may be written to for long
   * before it rests again.
   */
  let read = new Map<
    RelativePath,
    { sizeBytes: number; mtimeMs: number; appends: number; gapMs: number; lastMs: number; nextMs?: number }
  >();
  return {
    /** Returns how long a due file must have rested because it is appended to: it grew repeatedly, and still grows. */
    restMs: ({ path, sizeBytes }: ScanEntry, nowMs: number): number | undefined => {
      const before = read.get(path);
      const isAppended =
        before !== undefined &&
        before.appends >= APPENDS &&
        sizeBytes > before.sizeBytes &&
        nowMs - before.lastMs < 2 * CEILING_MS;
      return isAppended ? Math.max(settleMs, APPENDED_REST_MS + 2 * before.gapMs) : undefined;
    },
    /** Records a released file. `restedMs`: how long it has rested; `isAppended`: it was appended to. */
    released: (
      { path, sizeBytes, mtimeMs }: ScanEntry,
      { nowMs, restedMs, isAppended }: Readonly<{ nowMs: number; restedMs: number; isAppended: boolean }>,
    ): void => {
      const before = read.get(path);
      const gapMsMax = settleMs + APPEND_GAP_MS;
      if (before === undefined && Math.abs(restedMs) > gapMsMax) return;
      const nextMs = before?.nextMs ?? nowMs;
      const sinceMs = Math.max(0, nextMs - (before?.lastMs ?? -Infinity));
      const isSoon = sinceMs <= gapMsMax;
      // A version that was released and not sent comes again. It says nothing about growth.
      const isSame = before?.sizeBytes === sizeBytes && isSoon;
      // A file that rested longer than that is complete for now.
      const goesOn = isSoon || (isAppended && restedMs <= gapMsMax);
      const isAppend = before !== undefined && sizeBytes > before.sizeBytes && goesOn;
      // Sending may take longer than a gap. Then only the file's times show how far its appends are apart.
      const apartMs = isAppend ? Math.min(mtimeMs - before.mtimeMs - (nowMs - nextMs), gapMsMax) : 0;
      const gapMs = isSoon ? Math.max(sinceMs, apartMs) : restedMs;
      read.set(path, {
        sizeBytes,
        mtimeMs,
        appends: isSame ? before.appends : isAppend ? before.appends + 1 : 0,
        gapMs: isSame ? before.gapMs : isAppend ? Math.max(before.gapMs, gapMs) : 0,
        lastMs: nowMs,
      });
    },
    changed: (path: RelativePath, nowMs: number): void => {
      const before = read.get(path);
      if (before !== undefined) before.nextMs ??= nowMs;
    },
    ended: (path: RelativePath, nowMs: number): void => {
      const before = read.get(path);
      if (before !== undefined) before.lastMs = nowMs;
    },
    size: (): number => read.size,
    forgetOld: (nowMs: number): void => {
      read = new Map([...read].filter(([, { lastMs }]) => nowMs - lastMs < 2 * CEILING_MS));
    },
  };
}
