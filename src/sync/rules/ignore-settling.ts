import { CEILING_MS, TIMING } from "../plan/timing.ts";
import type { FolderPath } from "../disk/folder-path.ts";

/** An ignore file as it was read. */
export interface IgnoreVersion {
  /** Names its patterns: equal ones have the same rules. Undefined: there is no such file, or no pattern in it. */
  readonly hash: string | undefined;
  readonly patterns: readonly string[];
  /** Changes when the file is touched. */
  readonly stamp: string;
  /** Touched so shortly before it was read that, where file times are coarse, a later change may not show in them. */
  readonly isFresh: boolean;
}

/** An ignore file that came into force; without a hash it went out of force. */
export interface SettledIgnore {
  readonly folder: FolderPath;
  readonly hash: string | undefined;
}

/** When the changed ignore files that scans met will have settled. */
export interface IgnoreRest {
  readonly atMs: number;
  /** One of them has been changing for a minute: what waits for it is reported, and no pass waits for it. */
  readonly isOverdue: boolean;
}

/**
 * Decides when a changed ignore file counts. Programs write files in steps: they empty them first, or rename them away
 * and write new ones. Rules read in between would let through what the file is about to leave out, and a text that was
 * sent cannot be taken back. So no version counts before it was seen unchanged for some time, and nothing is decided in
 * its folder meanwhile.
 */
export interface IgnoreSettling {
  /** Whether a version counts: it is in force already, or it has settled. */
  counts(folder: FolderPath, version: IgnoreVersion): boolean;
  /** Whether a folder has an ignore file in force. */
  hasRules(folder: FolderPath): boolean;
  /** Whether a folder's ignore file has been changing for so long that this must be reported. */
  isOverdue(folder: FolderPath): boolean;
  /** A scan begins. */
  begin(): void;
  /** When what did not count will have settled, of all that was met since the last call. */
  takeRest(): IgnoreRest | undefined;
  /** What came into force or went out of it since the last call. */
  takeSettled(): readonly SettledIgnore[];
  /** Folders with rules in force whose ignore file no scan has asked for since the last `begin`. */
  unasked(): readonly FolderPath[];
  /** A folder is gone, and its rules with it. */
  forget(folder: FolderPath): void;
}

/** What ignore files are judged by. */
export interface IgnoreSettlingOptions {
  /** How long a changed file must have been at rest; 0: not at all. */
  readonly settleMs: number;
  /** How long one must have been at rest that may let more through. Default: see `TIMING`. */
  readonly looserRulesMs?: number;
  readonly now: () => number;
  /** Hashes of the ignore files that were in force when the process started, by folder. */
  readonly inForce: ReadonlyMap<FolderPath, string>;
}

interface InForce {
  readonly hash: string;
  /** Undefined: from a former process, of which only the hash is known. */
  readonly patterns: readonly string[] | undefined;
}

/** A version that does not count yet. */
interface Changing {
  /** Names the version and its last touch. */
  readonly mark: string;
  readonly patterns: readonly string[];
  readonly isLooser: boolean;
  readonly sinceMs: number;
  /** Since when the file has been changing. */
  readonly firstMs: number;
}

/** Opens the judgement of a source's ignore files. */
export function openIgnoreSettling({
  settleMs,
  looserRulesMs = TIMING.looserRulesMs,
  now,
  inForce,
}: IgnoreSettlingOptions): IgnoreSettling {
  const known = new Map<FolderPath, InForce>(
    [...inForce].map(([folder, hash]) => [folder, { hash, patterns: undefined }]),
  );
  /** Stamps of the files without a pattern that counted. */
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
  /** A file without a pattern that was just made: nobody knows what its writer is about to leave out. */
  const mayBeBegun = (folder: FolderPath, { hash, stamp, isFresh }: IgnoreVersion): boolean =>
    hash === undefined && isFresh && blank.get(folder) !== stamp;
  const isOverdue = (folder: FolderPath): boolean =>
    now() - (changing.get(folder)?.firstMs ?? now()) >= CEILING_MS;

  return {
    counts: (folder, version) => {
      asked.add(folder);
      const before = known.get(folder);
      const seen = changing.get(folder);
      const mark = `${version.hash} ${version.stamp}`;
      const nowMs = now();
      const isAsSeen = seen?.mark === mark;
      // A version that never counted may have been about to leave something out: it is not undone at once.
      const undoes = isAsSeen
        ? seen.isLooser
        : mayBeBegun(folder, version) || (seen !== undefined && isLooser(seen.patterns, version));
      const isBack = before?.hash === version.hash;
      if (isBack && !undoes) {
        enforce(folder, version);
        return true;
      }
      const looser = undoes || (!isBack && isLooser(before === undefined ? [] : before.patterns, version));
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
    hasRules: (folder) => known.has(folder),
    isOverdue,
    begin: () => {
      asked = new Set();
    },
    takeRest: () => {
      const taken = rest;
      rest = undefined;
      return taken;
    },
    takeSettled: () => {
      const taken = [...settled].map(([folder, hash]) => ({ folder, hash }));
      settled.clear();
      return taken;
    },
    unasked: () => [...known.keys()].filter((folder) => !asked.has(folder)),
    forget: (folder) => enforce(folder, { hash: undefined, patterns: [], stamp: "" }),
  };
}

/**
 * Whether a version may let through what another one leaves out; undefined: nobody knows its patterns. One without any is
 * suspect in itself.
 */
function isLooser(old: readonly string[] | undefined, { patterns }: IgnoreVersion): boolean {
  if (patterns.length === 0 || old === undefined) return true;
  // The last match decides, so the old patterns must be there in their order, and nothing new may let in again.
  let matched = 0;
  for (const pattern of patterns) {
    if (pattern === old[matched]) matched += 1;
    else if (pattern.startsWith("!")) return true;
  }
  return matched < old.length;
}
