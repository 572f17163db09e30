import { CEILING_MS, TIMING } from "../../plan/timing.ts";
import type { RelativePath } from "../../plan/model.ts";

/** One version of an ignore file. */
export interface IgnoreVersion {
  /** Identifies the patterns: equal hashes mean equal rules. Undefined: there is no file. */
  readonly hash: string | undefined;
  /** The file has no patterns: its writer may be about to add some. */
  readonly isBlank: boolean;
  /** Changes when the file is touched. */
  readonly stamp: string;
  /** It has not been touched for a minute, as far as file times and clock agree. */
  readonly isOld: boolean;
}

/** An ignore file that came into force; without a hash, it ceased to be in force. */
export interface SettledIgnore {
  /** Its path as seen from the source. */
  readonly file: RelativePath;
  readonly hash: string | undefined;
}

/** The time at which the changed ignore files that scans met will have settled. */
export interface IgnoreRest {
  readonly atMs: number;
  /** One of them has been changing for a minute. What waits for it is reported, and no pass waits for it. */
  readonly isOverdue: boolean;
}

/**
 * Decides when a changed ignore file comes into force. Programs write files in steps: they truncate them first, or rename
 * them away and write new ones. Rules read in between would let through what the file is about to exclude, and a sent text
 * cannot be taken back. So no version comes into force before it has been unchanged for some time, and nothing in its
 * folder is decided until then.
 */
export type IgnoreSettling = ReturnType<typeof openIgnoreSettling>;

/** Options for judging ignore files. */
export interface IgnoreSettlingOptions {
  /** Time for which a file that is new must be unchanged; 0: no version has to settle. */
  readonly settleMs: number;
  /** The same for one that replaces another version, because it may let more through. Default: see `TIMING`. */
  readonly changedRulesMs?: number;
  readonly now: () => number;
  /** Hashes of the ignore files that were in force when the process started, by path. */
  readonly inForce: ReadonlyMap<RelativePath, string>;
}

/** A version that does not apply yet. */
interface Changing {
  /** Identifies the version and its last touch. */
  readonly mark: string;
  readonly sinceMs: number;
  readonly restMs: number;
  /** Time of the first change. */
  readonly firstMs: number;
}

/** Opens the settling of a source's ignore files. */
export function openIgnoreSettling({
  settleMs,
  changedRulesMs = TIMING.changedRulesMs,
  now,
  inForce,
}: IgnoreSettlingOptions) {
  const known = new Map<RelativePath, string>(inForce);
  const changing = new Map<RelativePath, Changing>();
  const settled = new Map<RelativePath, string | undefined>();
  let rest: IgnoreRest | undefined;

  const enforce = (file: RelativePath, hash: string | undefined): void => {
    changing.delete(file);
    if (known.get(file) === hash) return;
    settled.set(file, hash);
    if (hash === undefined) known.delete(file);
    else known.set(file, hash);
  };
  const isOverdue = (file: RelativePath): boolean =>
    now() - (changing.get(file)?.firstMs ?? now()) >= CEILING_MS;
  /** How long a version must be unchanged that was not seen before. `seen` is one that never applied. */
  const restOf = (file: RelativePath, { isBlank }: IgnoreVersion, seen: Changing | undefined): number => {
    const isNew = seen === undefined && !known.has(file) && !isBlank;
    return isNew || settleMs === 0 ? settleMs : Math.max(settleMs, changedRulesMs);
  };

  return {
    /** Whether a version applies: it is in force already, or it has settled. */
    counts: (file: RelativePath, version: IgnoreVersion): boolean => {
      const { hash, stamp, isOld } = version;
      const seen = changing.get(file);
      const mark = `${hash} ${stamp}`;
      const nowMs = now();
      // What never applied may have been about to exclude something, so what was in force does not come back at once.
      const isInForce = seen === undefined && known.get(file) === hash;
      const { sinceMs, restMs } =
        seen?.mark === mark ? seen : { sinceMs: nowMs, restMs: restOf(file, version, seen) };
      // Nobody is writing a file that has been untouched for a minute.
      if (isInForce || isOld || nowMs - sinceMs >= restMs) {
        enforce(file, hash);
        return true;
      }
      changing.set(file, { mark, sinceMs, restMs, firstMs: seen?.firstMs ?? nowMs });
      rest = {
        atMs: Math.min(rest?.atMs ?? Infinity, sinceMs + restMs),
        isOverdue: (rest?.isOverdue ?? true) && isOverdue(file),
      };
      return false;
    },
    /** The ignore files in force. */
    inForce: (): readonly RelativePath[] => [...known.keys()],
    hasInForce: (file: RelativePath): boolean => known.has(file),
    /** Whether an ignore file has been changing for so long that it must be reported. */
    isOverdue,
    /** The time at which the versions met since the last call will have settled. */
    takeRest: (): IgnoreRest | undefined => {
      const taken = rest;
      rest = undefined;
      return taken;
    },
    /** The versions that came into force, or ceased to be in force, since the last call. */
    takeSettled: (): readonly SettledIgnore[] => {
      const taken = [...settled].map(([file, hash]) => ({ file, hash }));
      settled.clear();
      return taken;
    },
    /** Removes the rules of a folder that no longer exists. */
    forget: (file: RelativePath): void => enforce(file, undefined),
  };
}
