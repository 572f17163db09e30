import { CEILING_MS, TIMING } from "../../plan/timing.ts";
import type { FolderPath } from "../../plan/model.ts";

/** One version of an ignore file. */
export interface IgnoreVersion {
  /** Identifies the patterns: equal hashes mean equal rules. Undefined: no file, or a file without patterns. */
  readonly hash: string | undefined;
  readonly patterns: readonly string[];
  /** Changes when the file is touched. */
  readonly stamp: string;
  /** The file was touched so recently that, with coarse file times, a later change may not show in them. */
  readonly isFresh: boolean;
  /** It has not been touched for a minute, as far as file times and clock agree. */
  readonly isOld?: boolean;
}

/** An ignore file that came into force; without a hash, it ceased to be in force. */
export interface SettledIgnore {
  readonly folder: FolderPath;
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
  /** Time for which a changed file must be unchanged; 0: none. */
  readonly settleMs: number;
  /** The same for a version that may let more through. Default: see `TIMING`. */
  readonly looserRulesMs?: number;
  readonly now: () => number;
  /** Hashes of the ignore files that were in force when the process started, by folder. */
  readonly inForce: ReadonlyMap<FolderPath, string>;
}

interface InForce {
  readonly hash: string;
  /** Undefined: from an earlier process, of which only the hash is known. */
  readonly patterns: readonly string[] | undefined;
}

/** A version that does not apply yet. */
interface Changing {
  /** Identifies the version and its last touch. */
  readonly mark: string;
  readonly patterns: readonly string[];
  readonly isLooser: boolean;
  readonly sinceMs: number;
  /** Time of the first change. */
  readonly firstMs: number;
}

/** Opens the settling of a source's ignore files. */
export function openIgnoreSettling({
  settleMs,
  looserRulesMs = TIMING.looserRulesMs,
  now,
  inForce,
}: IgnoreSettlingOptions) {
  const known = new Map<FolderPath, InForce>(
    [...inForce].map(([folder, hash]) => [folder, { hash, patterns: undefined }]),
  );
  /** Stamps of files without patterns that applied. */
  const blank = new Map<FolderPath, string>();
  const changing = new Map<FolderPath, Changing>();
  const settled = new Map<FolderPath, string | undefined>();
  let asked = new Set<FolderPath>();
  let rest: IgnoreRest | undefined;

  const enforce = (
    folder: FolderPath,
    { hash, patterns, stamp }: Pick<IgnoreVersion, "hash" | "patterns" | "stamp">,
  ): void => {
    if (known.get(folder)?.hash !== hash) settled.set(folder, hash);
    changing.delete(folder);
    blank.delete(folder);
    if (hash === undefined && stamp !== "") blank.set(folder, stamp);
    if (hash === undefined) known.delete(folder);
    else known.set(folder, { hash, patterns });
  };
  /** Whether a file without patterns was just created: its writer may be about to exclude something. */
  const mayBeIncomplete = (folder: FolderPath, { hash, stamp, isFresh }: IgnoreVersion): boolean =>
    hash === undefined && isFresh && blank.get(folder) !== stamp;
  const isOverdue = (folder: FolderPath): boolean =>
    now() - (changing.get(folder)?.firstMs ?? now()) >= CEILING_MS;

  return {
    /** Whether a version applies: it is in force already, or it has settled. */
    counts: (folder: FolderPath, version: IgnoreVersion): boolean => {
      asked.add(folder);
      const before = known.get(folder);
      const seen = changing.get(folder);
      const mark = `${version.hash} ${version.stamp}`;
      const nowMs = now();
      const isAsSeen = seen?.mark === mark;
      const isBack = before?.hash === version.hash;
      // A version that never applied may have been about to exclude something: it is not undone at once.
      const undoes =
        mayBeIncomplete(folder, version) || (seen !== undefined && isLooser(seen.patterns, version));
      // Nobody is writing a file that is old when it is first seen.
      const isCalm = before === undefined && seen === undefined && version.isOld === true;
      const isChange = !isBack && !isCalm && isLooser(before === undefined ? [] : before.patterns, version);
      const looser = isAsSeen ? seen.isLooser : undoes || isChange;
      if (isBack && !looser) {
        enforce(folder, version);
        return true;
      }
      const restMs = looser && settleMs > 0 ? Math.max(settleMs, looserRulesMs) : settleMs;
      const sinceMs = isAsSeen ? seen.sinceMs : nowMs;
      if (nowMs - sinceMs >= restMs) {
        enforce(folder, version);
        return true;
      }
      const firstMs = seen?.firstMs ?? nowMs;
      changing.set(folder, { mark, patterns: version.patterns, isLooser: looser, sinceMs, firstMs });
      rest = {
        atMs: Math.min(rest?.atMs ?? Infinity, sinceMs + restMs),
        isOverdue: (rest?.isOverdue ?? true) && isOverdue(folder),
      };
      return false;
    },
    /** Whether a folder has an ignore file in force. */
    hasRules: (folder: FolderPath): boolean => known.has(folder),
    /** Whether an ignore file of this name is in force in any folder. */
    knows: (name: string): boolean =>
      [...known.keys()].some((key) => key === name || key.endsWith(`/${name}`)),
    /** Whether a folder's ignore file has been changing for so long that it must be reported. */
    isOverdue,
    /** Called at the start of a scan. */
    begin: (): void => {
      asked = new Set();
    },
    /** The time at which the versions met since the last call will have settled. */
    takeRest: (): IgnoreRest | undefined => {
      const taken = rest;
      rest = undefined;
      return taken;
    },
    /** The versions that came into force, or ceased to be in force, since the last call. */
    takeSettled: (): readonly SettledIgnore[] => {
      const taken = [...settled].map(([folder, hash]) => ({ folder, hash }));
      settled.clear();
      return taken;
    },
    /** Folders with rules in force whose ignore file no scan has asked for since the last `begin`. */
    unasked: (): readonly FolderPath[] => [...known.keys()].filter((folder) => !asked.has(folder)),
    /** Removes the rules of a folder that no longer exists. */
    forget: (folder: FolderPath): void => enforce(folder, { hash: undefined, patterns: [], stamp: "" }),
  };
}

/**
 * Whether a version may let through what the old one excludes. Undefined: the old patterns are unknown. A version without
 * patterns always may.
 */
function isLooser(old: readonly string[] | undefined, { patterns }: IgnoreVersion): boolean {
  if (patterns.length === 0 || old === undefined) return true;
  // The last match decides, so the old patterns must occur in their order, and no new one may include anything again.
  let matched = 0;
  for (const pattern of patterns) {
    if (pattern === old[matched]) matched += 1;
    else if (pattern.startsWith("!")) return true;
  }
  return matched < old.length;
}
