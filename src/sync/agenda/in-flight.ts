import { type Counted, countedAs } from "./counted.ts";
import type { Deletion } from "../ledger/intents.ts";
import type { Candidate, RelativePath, ScanEntry } from "../plan/model.ts";
import { sameIdentity } from "../plan/moves.ts";
import { STEP_ITEMS, type Steps } from "../plan/steps.ts";

/** What is planned for a source and not done: files to read and send, and deletes. */
export interface InFlight {
  begin(candidates: readonly Candidate[]): void;
  beginDeletes(deletions: readonly Deletion[]): void;
  /**
   * Records that the file's job has ended. Returns the paths to check now: its own, if something happened there since,
   * and those that waited for it.
   */
  end(entry: ScanEntry): readonly RelativePath[];
  /** Schedules a check of a path for when another one's job has ended. Returns false if it has ended already. */
  checkAfter(busyPath: RelativePath, path: RelativePath): boolean;
  endDelete(deletion: Deletion): void;
  has(path: RelativePath): boolean;
  /**
   * Returns a snapshot that also includes whatever ends until it is closed: a pass decides and begins by this one
   * state.
   */
  asOfNow(): BusyPaths;
  isDeleting(id: number): boolean;
  /** Records that something happened at a path that has a job. */
  outdate(path: RelativePath): void;
  isOutdated(path: RelativePath): boolean;
  /** Records that the path's row, if it has one, counts as unsure from here on. */
  uncount(path: RelativePath): void;
  /** Records that the file of a path is being read or sent. Its row may be counted before its job has ended. */
  markInTransit(path: RelativePath): void;
  /** Returns files of which no row counted when they were planned, and that are being read or sent. They are few. */
  inTransit(): Iterable<RelativePath>;
  /** Number of files whose row counts as nothing, or as one in agreement. */
  size(): number;
  /** Number of them that have a row in agreement: an older version of theirs. */
  agreed(): number;
  isEmpty(): boolean;
  /** Returns the paths of files and deletes. */
  paths(): Iterable<RelativePath>;
  /** Reports whether a file or a delete of this path is in flight. */
  touches(path: RelativePath): boolean;
}

/** Paths of files in flight when the snapshot was taken. Nothing may begin before it is closed. */
export interface BusyPaths {
  has(path: RelativePath): boolean;
  /** Returns those that had a row when they were planned, or may have received one since, as of now. */
  known(): Iterable<RelativePath>;
  /**
   * Returns where a file with this inode is in flight, or was when the snapshot was taken, under another path. `isSame`
   * decides whether it was renamed since, and perhaps edited, or its inode number was reused. A path whose job has not
   * ended comes first.
   */
  otherPath(entry: ScanEntry, isSame: (busy: ScanEntry) => boolean): RelativePath | undefined;
  /**
   * Returns those in the scope of a scan at which the scan saw another file than the one in flight, or none: what
   * happened there may have caused no event. `seen` are its entries at these paths.
   */
  changed(
    seen: readonly ScanEntry[],
    inScope: (path: RelativePath) => boolean,
  ): Steps<readonly RelativePath[]>;
  close(): void;
}

/** Opens an empty set. */
export function openInFlight(): InFlight {
  /** Paths with a job, and how their rows count. */
  const busy = new Map<RelativePath, { readonly entry: ScanEntry; counted: Counted }>();
  const transit = new Set<RelativePath>();
  const busyFiles = openInodeIndex();
  /** Busy paths where something happened since. */
  const stale = new Set<RelativePath>();
  /** Paths that wait for a busy one. */
  const waiting = new Map<RelativePath, Set<RelativePath>>();
  const deleting = new Set<number>();
  /** Paths of deletes, and the number for each: two held rows of one path may be deleted together. */
  const deletingPaths = new Map<RelativePath, number>();
  /** Collects what has ended, for each open snapshot. */
  const ended = new Set<(entry: ScanEntry) => void>();
  const sizes: Record<Counted, number> = { agreed: 0, trouble: 0, nothing: 0 };

  const remove = (path: RelativePath): void => {
    const work = busy.get(path);
    if (work === undefined) return;
    sizes[work.counted] -= 1;
    busy.delete(path);
    transit.delete(path);
    busyFiles.remove(work.entry);
  };
  return {
    begin: (candidates) => {
      for (const { entry, known } of candidates) {
        const counted = countedAs(known?.state);
        remove(entry.path);
        busy.set(entry.path, { entry, counted });
        sizes[counted] += 1;
        busyFiles.add(entry);
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
      remove(entry.path);
      for (const note of ended) note(entry);
      const after = [...(waiting.get(entry.path) ?? [])];
      waiting.delete(entry.path);
      return stale.delete(entry.path) ? [entry.path, ...after] : after;
    },
    checkAfter: (busyPath, path) => {
      if (!busy.has(busyPath)) return false;
      waiting.set(busyPath, (waiting.get(busyPath) ?? new Set()).add(path));
      return true;
    },
    endDelete: ({ id, path }) => {
      if (!deleting.delete(id)) return;
      const left = (deletingPaths.get(path) ?? 1) - 1;
      if (left === 0) deletingPaths.delete(path);
      else deletingPaths.set(path, left);
    },
    has: (path) => busy.has(path),
    asOfNow: () => {
      const since = new Map<RelativePath, ScanEntry>();
      const sinceFiles = openInodeIndex();
      const note = (entry: ScanEntry): void => {
        since.set(entry.path, entry);
        sinceFiles.add(entry);
      };
      ended.add(note);
      return {
        has: (path) => busy.has(path) || since.has(path),
        *known() {
          for (const [path, { counted }] of busy) if (counted !== "nothing" || transit.has(path)) yield path;
        },
        otherPath: (entry, isSame) => {
          const isOther = (each: ScanEntry): boolean => each.path !== entry.path && isSame(each);
          const found = busyFiles.get(entry.ino).find(isOther) ?? sinceFiles.get(entry.ino).find(isOther);
          return found?.path;
        },
        changed: function* (seen, inScope) {
          const found: RelativePath[] = [];
          const entries = new Map<RelativePath, ScanEntry>();
          const taken = [...since.values()];
          for (const { entry } of busy.values()) taken.push(entry);
          let items = 0;
          for (const entry of seen) {
            if (++items % STEP_ITEMS === 0) yield;
            entries.set(entry.path, entry);
          }
          for (const entry of taken) {
            if (++items % STEP_ITEMS === 0) yield;
            if (inScope(entry.path) && !isAsTaken(entry, entries.get(entry.path))) found.push(entry.path);
          }
          return found;
        },
        close: () => void ended.delete(note),
      };
    },
    isDeleting: (id) => deleting.has(id),
    outdate: (path) => {
      if (busy.has(path)) stale.add(path);
    },
    isOutdated: (path) => stale.has(path),
    uncount: (path) => {
      const work = busy.get(path);
      if (work?.counted !== "agreed") return;
      work.counted = "trouble";
      sizes.agreed -= 1;
      sizes.trouble += 1;
    },
    markInTransit: (path) => {
      if (busy.get(path)?.counted === "nothing") transit.add(path);
    },
    inTransit: () => transit,
    size: () => sizes.nothing + sizes.agreed,
    agreed: () => sizes.agreed,
    isEmpty: () => busy.size === 0 && deleting.size === 0,
    *paths() {
      yield* busy.keys();
      yield* deletingPaths.keys();
    },
    touches: (path) => busy.has(path) || deletingPaths.has(path),
  };
}

/** Files by inode number. Hard links share one; nearly every other file is alone and needs no list. */
function openInodeIndex(): {
  add(entry: ScanEntry): void;
  remove(entry: ScanEntry): void;
  get(ino: number): readonly ScanEntry[];
} {
  const single = new Map<number, ScanEntry>();
  const several = new Map<number, readonly ScanEntry[]>();
  const get = (ino: number): readonly ScanEntry[] => {
    const only = single.get(ino);
    return only === undefined ? (several.get(ino) ?? []) : [only];
  };
  const set = (ino: number, entries: readonly ScanEntry[]): void => {
    single.delete(ino);
    several.delete(ino);
    const [first] = entries;
    if (entries.length > 1) several.set(ino, entries);
    else if (first !== undefined) single.set(ino, first);
  };
  return {
    add: (entry) => set(entry.ino, [...get(entry.ino), entry]),
    remove: (entry) =>
      set(
        entry.ino,
        get(entry.ino).filter((each) => each !== entry),
      ),
    get,
  };
}

/** Reports whether a file is unchanged since it was planned. */
function isAsTaken(taken: ScanEntry, now: ScanEntry | undefined): boolean {
  return now !== undefined && sameIdentity(taken, now) && taken.ctimeMs === now.ctimeMs;
}
