import type { RelativePath, ScanEntry } from "../../plan/model.ts";
import { CEILING_MS, VERSION_GAP_MS, VERSIONS_AT_ONCE } from "../../plan/timing.ts";
import type { EndedJob } from "./jobs.ts";

/**
 * Decides when a file may be read: when it has rested, or has not rested for too long, and no sooner than its versions may
 * follow each other. What it remembers is evidence about files, not the state of a path. Reads no clock: times are arguments.
 */
export type RestDetector = ReturnType<typeof openRestDetector>;

/**
 * A file without a byte must have rested this long. A program that rewrites a file empties it first, and on a busy
 * machine its first bytes follow hundreds of milliseconds later.
 */
export const EMPTY_MS = 1000;

/** A file of which a version was dropped before it was sent, because it changed again. */
const NOT_FOUND = { sizeBytes: -1, mtimeMs: -1 };

/** Number of files that are remembered although what is known of them may be out of date. */
const RECENT_MAX = 1000;

/** A file as it was last found unrested, since `sinceMs`. It was found so from `firstMs` to `lastMs`. */
interface Unrested {
  readonly sizeBytes: number;
  readonly mtimeMs: number;
  readonly sinceMs: number;
  readonly firstMs: number;
  readonly lastMs: number;
  /** It may be read as it is. */
  readonly isOverdue: boolean;
}

/** Opens a detector that knows no file. `settleMs` is how long a file must have rested. */
export function openRestDetector(settleMs: number) {
  /** Files that have not rested, until their job has ended. */
  let unrested = new Map<RelativePath, Unrested>();
  let forgetAbove = RECENT_MAX;
  /** When the last versions of a file will have taken no more than their time. In the order of the last versions. */
  const evenMs = new Map<RelativePath, number>();

  /** Reports false for a file that disappeared before it rested: a later one of its name is another. */
  const isCurrent = ({ lastMs }: Unrested, nowMs: number): boolean =>
    nowMs - lastMs < 2 * Math.max(CEILING_MS, settleMs);
  const note = (path: RelativePath, found: Unrested): void => {
    unrested.set(path, found);
    if (unrested.size <= forgetAbove) return;
    unrested = new Map([...unrested].filter(([, each]) => isCurrent(each, found.lastMs)));
    forgetAbove = Math.max(RECENT_MAX, 2 * unrested.size);
  };
  const countVersion = (path: RelativePath, nowMs: number): void => {
    for (const [each, overMs] of evenMs) {
      if (overMs > nowMs) break;
      evenMs.delete(each);
    }
    const beforeMs = evenMs.get(path) ?? nowMs;
    evenMs.delete(path);
    evenMs.set(path, Math.max(nowMs, beforeMs) + VERSION_GAP_MS);
  };
  return {
    /**
     * Returns when to check a file again; undefined: it may be read, by its times at `wallMs`, the system's clock, which
     * unlike `nowMs` may have been set back: size and modification time have been the same for the settle time, or
     * EMPTY_MS at least for an empty file; or it was never found so for CEILING_MS.
     */
    restsAtMs: (entry: ScanEntry, nowMs: number, wallMs: number = nowMs): number | undefined => {
      const { path, sizeBytes, mtimeMs } = entry;
      const found = unrested.get(path);
      const before = found !== undefined && isCurrent(found, nowMs) ? found : undefined;
      const same = before?.sizeBytes === sizeBytes && before.mtimeMs === mtimeMs;
      const ageMs = wallMs - mtimeMs;
      const restMs = sizeBytes === 0 && settleMs > 0 ? Math.max(settleMs, EMPTY_MS) : settleMs;
      // A modification time in the future proves nothing. Then only a second check does.
      const restedMs = Math.max(ageMs, same ? nowMs - before.sinceMs : 0);
      const hasRested = restedMs >= restMs;
      const firstMs = before?.firstMs ?? nowMs;
      const isOverdue = nowMs - firstMs >= CEILING_MS;
      const sinceMs = same ? before.sinceMs : nowMs;
      if (!hasRested || isOverdue)
        note(path, { sizeBytes, mtimeMs, sinceMs, firstMs, lastMs: nowMs, isOverdue });
      const nextMs = (evenMs.get(path) ?? -Infinity) - (VERSIONS_AT_ONCE - 1) * VERSION_GAP_MS;
      if (nextMs > nowMs) return nextMs;
      if (hasRested || isOverdue) return undefined;
      return nowMs + Math.ceil(ageMs >= 0 ? restMs - ageMs : restMs);
    },
    /** Reports whether a file is read and sent as it is, because it never rests. */
    isOverdue: (path: RelativePath): boolean => unrested.get(path)?.isOverdue === true,
    /** Records that a file changed while it was read. One that cannot be opened is torn without a change. */
    torn: countVersion,
    /** Records that the job of a file has ended. */
    ended: ({ path, ctimeMs }: ScanEntry, nowMs: number, job?: EndedJob): void => {
      // A file that was changed long ago needs no bound.
      if (job?.isSent === true && (evenMs.has(path) || nowMs - ctimeMs < VERSION_GAP_MS))
        countVersion(path, nowMs);
      // It has not rested since, and its next version must not wait for longer than the first.
      if (job?.isOutdated === true && !job.isSent) {
        const firstMs = unrested.get(path)?.firstMs ?? nowMs;
        note(path, { ...NOT_FOUND, sinceMs: nowMs, firstMs, lastMs: nowMs, isOverdue: false });
      } else unrested.delete(path);
    },
  };
}
