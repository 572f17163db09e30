import type { Deletion } from "./pass/deletes.ts";
import type { Look, RelativePath, ScanEntry } from "./plan/model.ts";

/** What of a source is planned and not done: files to be read and sent, and deletes. */
export interface UnderWay {
  begin(looks: readonly Look[]): void;
  beginDeletes(deletions: readonly Deletion[]): void;
  /** The file's job has ended. True: something happened at the path since, so it must be looked at again. */
  end(entry: ScanEntry): boolean;
  endDelete(deletion: Deletion): void;
  has(path: RelativePath): boolean;
  /** The same as of now, whatever ends until it is closed: what a comparison goes by that takes its time. */
  asOfNow(): BusyPaths;
  isDeleting(id: number): boolean;
  /** Something happened at a path that has a job. */
  outdate(path: RelativePath): void;
  isOutdated(path: RelativePath): boolean;
  /** The path's row is no longer among those in agreement. */
  uncount(path: RelativePath): void;
  /** A file on its way that had this inode when it was planned: it may have been renamed since. */
  byInode(ino: number): ScanEntry | undefined;
  /** Files. */
  size(): number;
  /** How many of them have a row in agreement: an older version of theirs. */
  agreed(): number;
  isEmpty(): boolean;
  /** Of files and deletes. */
  paths(): Iterable<RelativePath>;
  /** Whether a file or a delete of this path is under way. */
  touches(path: RelativePath): boolean;
}

/** Paths of files under way at some moment. */
export interface BusyPaths {
  has(path: RelativePath): boolean;
  close(): void;
}

/** Nothing is under way. */
export function openUnderWay(): UnderWay {
  /** Paths with a job. `agreed`: the row still counts as in agreement. */
  const busy = new Map<RelativePath, { readonly entry: ScanEntry; agreed: boolean }>();
  const travelling = new Map<number, ScanEntry>();
  /** Busy paths where something happened since. */
  const stale = new Set<RelativePath>();
  const deleting = new Set<number>();
  /** Paths of those, and how many each has: two held rows of one path may be deleted together. */
  const deletingPaths = new Map<RelativePath, number>();
  /** What has ended, for each that asked for the paths as of a moment. */
  const ended = new Set<Set<RelativePath>>();
  let agreed = 0;

  const uncount = (path: RelativePath): void => {
    const work = busy.get(path);
    if (work?.agreed !== true) return;
    work.agreed = false;
    agreed -= 1;
  };
  return {
    begin: (looks) => {
      for (const { entry, known } of looks) {
        const isAgreed = known?.state === "agreed";
        busy.set(entry.path, { entry, agreed: isAgreed });
        travelling.set(entry.ino, entry);
        if (isAgreed) agreed += 1;
      }
    },
    beginDeletes: (deletions) => {
      for (const { id, path } of deletions) {
        if (deleting.has(id)) continue;
        deleting.add(id);
        deletingPaths.set(path, (deletingPaths.get(path) ?? 0) + 1);
      }
    },
    end: (entry) => {
      uncount(entry.path);
      busy.delete(entry.path);
      for (const since of ended) since.add(entry.path);
      if (travelling.get(entry.ino) === entry) travelling.delete(entry.ino);
      return stale.delete(entry.path);
    },
    endDelete: ({ id, path }) => {
      if (!deleting.delete(id)) return;
      const left = (deletingPaths.get(path) ?? 1) - 1;
      if (left === 0) deletingPaths.delete(path);
      else deletingPaths.set(path, left);
    },
    has: (path) => busy.has(path),
    asOfNow: () => {
      const since = new Set<RelativePath>();
      ended.add(since);
      return {
        has: (path) => busy.has(path) || since.has(path),
        close: () => void ended.delete(since),
      };
    },
    isDeleting: (id) => deleting.has(id),
    outdate: (path) => {
      if (busy.has(path)) stale.add(path);
    },
    isOutdated: (path) => stale.has(path),
    uncount,
    byInode: (ino) => travelling.get(ino),
    size: () => busy.size,
    agreed: () => agreed,
    isEmpty: () => busy.size === 0 && deleting.size === 0,
    *paths() {
      yield* busy.keys();
      yield* deletingPaths.keys();
    },
    touches: (path) => busy.has(path) || deletingPaths.has(path),
  };
}
