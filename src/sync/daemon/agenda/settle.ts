import type { RelativePath, ScanEntry } from "../../plan/model.ts";
import { CEILING_MS, UNREST_MS_MAX, VERSION_GAP_MS } from "../../plan/timing.ts";
import type { EndedJob } from "./jobs.ts";

/**
 * Decides when a file may be read, from what earlier checks found at its path: when it has rested, and when its next version
 * may follow the last one. What it remembers is evidence about files, not the state of a path. Reads no clock: times are
 * arguments.
 */
export type RestDetector = ReturnType<typeof openRestDetector>;

/**
 * A file without a byte must have rested this long. A program that rewrites a file empties it first, and on a busy
 * machine its first bytes follow hundreds of milliseconds later.
 */
export const EMPTY_MS = 1000;

/**
 * Two versions that are this far apart, besides their gap, do not belong together. A file that has rested this long is
 * complete for now, and its version waits for no gap.
 */
const APART_MS = 15_000;

/** A file of which a version was dropped before it was sent, because it changed again. */
const NOT_FOUND = { sizeBytes: -1, mtimeMs: -1, grows: false };

/** Number of files that are remembered although what is known of them may be out of date. */
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
  /** Files that have not rested, or may be read as they are, until their job has ended. */
  let restless = new Map<RelativePath, Unrested>();
  const versions = openVersions(settleMs);
  let forgetAbove = RECENT_MAX;

  /** Reports false for a file that disappeared before it rested: a later one of its name is another. */
  const isCurrent = ({ lastMs }: Unrested, nowMs: number): boolean =>
    nowMs - lastMs < 2 * Math.max(CEILING_MS, settleMs);
  const noteRestless = (path: RelativePath, found: Unrested): void => {
    restless.set(path, found);
    if (restless.size <= forgetAbove) return;
    restless = new Map([...restless].filter(([, each]) => isCurrent(each, found.lastMs)));
    forgetAbove = Math.max(RECENT_MAX, 2 * restless.size);
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
      const restMs = sizeBytes === 0 && settleMs > 0 ? Math.max(settleMs, EMPTY_MS) : settleMs;
      // A modification time in the future proves nothing. Then only a second check does.
      const restedMs = Math.max(ageMs, same ? nowMs - before.sinceMs : 0);
      const hasRested = restedMs >= restMs;
      const unrestMsMax = before?.grows === true ? CEILING_MS : UNREST_MS_MAX + settleMs;
      const isUnresting = before !== undefined && nowMs - before.firstMs >= unrestMsMax;
      const heldUntilMs = Math.max(nowMs, versions.nextMs(path, nowMs, restedMs));
      if ((hasRested || isUnresting) && heldUntilMs <= nowMs) {
        versions.release(entry, nowMs, restedMs);
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
    /** Records that a file changed while it was read. */
    torn: (path: RelativePath, nowMs: number): void => versions.torn(path, nowMs),
    /** Records that the job of a file has ended, whether it was sent or not. The next version follows after a gap. */
    ended: (path: RelativePath, nowMs: number, job?: EndedJob): void => {
      if (job?.isSent === true) versions.sent(path, nowMs);
      // It has not rested since, and its next version must not wait for longer than the first.
      if (job?.isOutdated === true && !job.isSent) {
        const firstMs = restless.get(path)?.firstMs ?? nowMs;
        noteRestless(path, { ...NOT_FOUND, sinceMs: nowMs, firstMs, lastMs: nowMs });
      } else restless.delete(path);
    },
  };
}

/** What is known of the versions of a file that was changed lately. */
interface Versions {
  /** Size of the last version that was sent; Infinity before. */
  readonly sentBytes: number;
  /** Size of the version that may be read now, and when it was released. */
  readonly nextBytes: number;
  readonly releasedMs: number;
  /** When the job of the last version ended. */
  readonly endedMs: number;
  readonly wasTorn: boolean;
  readonly gapMs: number;
  /** When the versions will have taken no more than their time. */
  readonly evenMs: number;
}

const FIRST = {
  sentBytes: Infinity,
  endedMs: -Infinity,
  wasTorn: false,
  gapMs: VERSION_GAP_MS,
  evenMs: -Infinity,
};

/**
 * Bounds the rate of a file's versions: one in each gap of VERSION_GAP_MS. One of them may come early, so that an edit does
 * not wait because a first sync has just sent the file. Each version that is larger than the last one, as of a log, and each
 * that is torn while it is read, doubles the gap, up to CEILING_MS.
 */
function openVersions(settleMs: number) {
  const recent = new Map<RelativePath, Versions>();
  const isOver = ({ endedMs, releasedMs, evenMs }: Versions, nowMs: number): boolean =>
    nowMs > Math.max(endedMs, releasedMs, evenMs) + APART_MS;
  const end = (path: RelativePath, nowMs: number, wasTorn: boolean): void => {
    for (const [each, versions] of recent) {
      if (!isOver(versions, nowMs)) break;
      recent.delete(each);
    }
    const before = recent.get(path) ?? (wasTorn ? { ...FIRST, nextBytes: 0, releasedMs: nowMs } : undefined);
    if (before === undefined) return;
    const isSoon = before.releasedMs - before.endedMs <= before.gapMs + APART_MS;
    const grows = wasTorn || before.nextBytes > before.sentBytes;
    const gapMs = isSoon && grows ? Math.min(2 * before.gapMs, CEILING_MS) : VERSION_GAP_MS;
    const evenMs = Math.max(nowMs, before.evenMs) + gapMs;
    const sentBytes = wasTorn ? before.sentBytes : before.nextBytes;
    // The order is that of the last versions, which is nearly that in which they are over.
    recent.delete(path);
    recent.set(path, { ...before, sentBytes, endedMs: nowMs, wasTorn, gapMs, evenMs });
  };
  return {
    /** Returns when the next version may be read, if the file has rested for `restedMs`; -Infinity: at any time. */
    nextMs: (path: RelativePath, nowMs: number, restedMs: number): number => {
      const versions = recent.get(path);
      if (versions === undefined) return -Infinity;
      const { wasTorn, gapMs, evenMs } = versions;
      // A settle time of zero requires no rest, except of a file that grows all the time.
      if (gapMs === VERSION_GAP_MS) return settleMs === 0 ? -Infinity : evenMs - gapMs;
      // A file that is torn without a change cannot be opened.
      if (wasTorn) return evenMs - gapMs;
      return Math.min(evenMs - gapMs, nowMs + Math.max(0, APART_MS - restedMs));
    },
    /** Records that a version may be read. A file that was changed long ago needs no bound. */
    release: ({ path, sizeBytes }: ScanEntry, nowMs: number, restedMs: number): void => {
      const before = recent.get(path);
      if (before === undefined && restedMs > APART_MS) return;
      recent.set(path, { ...(before ?? FIRST), nextBytes: sizeBytes, releasedMs: nowMs });
    },
    sent: (path: RelativePath, nowMs: number): void => end(path, nowMs, false),
    torn: (path: RelativePath, nowMs: number): void => end(path, nowMs, true),
  };
}
