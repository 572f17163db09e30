import type { Outcome } from "../../ledger/activity.ts";
import type { Candidate, RelativePath, ScanEntry } from "../../plan/model.ts";
import { sameIdentity } from "../../plan/moves.ts";
import { type Counted, countedAs } from "../../plan/version.ts";
import { STEP_ITEMS, type Steps } from "../../plan/steps.ts";

/** The files of a source that are planned and not done. Each is in the queue, or is being read or sent. */
export type Jobs = ReturnType<typeof openJobs>;

/**
 * A snapshot of the files with jobs that also includes whatever ends until it is closed: a pass decides and begins by
 * this one state. Nothing may begin before it is closed.
 */
export type BusyPaths = ReturnType<typeof openSnapshot>;

function sumOf({ agreed, failed, trouble, nothing }: Readonly<Record<Counted, number>>): number {
  return agreed + failed + trouble + nothing;
}

/** A job, or what remains of it while its file is parked. */
interface Job {
  readonly entry: ScanEntry;
  readonly sinceMs: number;
  counted: Counted;
  isOutdated: boolean;
  rereadMs: number | undefined;
  isParked: boolean;
  /** Its result was reported, or the service accepted it. */
  isSent: boolean;
  hasEnded: boolean;
}

/** A job that has ended. */
export type EndedJob = Readonly<Pick<Job, "isOutdated" | "isSent" | "rereadMs">>;

/** So many parked files may be gone before they are searched for: each search asks about all parked ones. */
const GONE_MAX = 1000;

/** Opens an empty list. */
export function openJobs() {
  /** A file that is planned again keeps its position, so that the first is the oldest. */
  const jobs = new Map<RelativePath, Job>();
  const sizes: Record<Counted, number> = { agreed: 0, failed: 0, trouble: 0, nothing: 0 };
  const sending = new Set<RelativePath>();
  const busyFiles = openInodeIndex();
  /** Collects what has ended, for each open snapshot. */
  const ended = new Set<(entry: ScanEntry) => void>();

  const jobOf = (path: RelativePath): Job | undefined => {
    const job = jobs.get(path);
    return job?.hasEnded === false ? job : undefined;
  };
  const hasJob = (path: RelativePath): boolean => jobOf(path) !== undefined;
  const change = (path: RelativePath, facts: Partial<Job>): void => {
    const job = jobOf(path);
    if (job !== undefined) Object.assign(job, facts);
  };
  const remove = (path: RelativePath): Job | undefined => {
    const job = jobOf(path);
    if (job === undefined) return undefined;
    sizes[job.counted] -= 1;
    sending.delete(path);
    busyFiles.remove(job.entry);
    job.hasEnded = true;
    return job;
  };

  return {
    /** Begins jobs. A parked file that is tried again has waited since it was first planned. */
    queue: (candidates: readonly Candidate[], nowMs: number): void => {
      for (const { entry, known } of candidates) {
        const { path } = entry;
        const isOutdated = remove(path)?.isOutdated === true;
        const sinceMs = jobs.get(path)?.sinceMs ?? nowMs;
        const counted = countedAs(known?.state);
        const rest = { rereadMs: undefined, isParked: false, isSent: false, hasEnded: false };
        jobs.set(path, { entry, sinceMs, counted, isOutdated, ...rest });
        sizes[counted] += 1;
        busyFiles.add(entry);
      }
    },
    /** Records that a job's file is being read or sent. Its row may be counted before the job has ended. */
    send: (path: RelativePath): void => {
      if (hasJob(path)) sending.add(path);
    },
    /** Records that something happened at the path. If it has a job, that is dropped before it is sent, and starts over. */
    outdate: (path: RelativePath): void => change(path, { isOutdated: true }),
    isOutdated: (path: RelativePath): boolean => jobOf(path)?.isOutdated === true,
    /** Records that the row of a job's path, if it has one, counts as unsure from here on. */
    uncount: (path: RelativePath): void => {
      const job = jobOf(path);
      if (job?.counted !== "agreed") return;
      job.counted = "trouble";
      sizes.agreed -= 1;
      sizes.trouble += 1;
    },
    /** Has a path read again at a time, after its job. */
    rereadAt: (path: RelativePath, atMs: number): void => change(path, { rereadMs: atMs }),
    /** Records the result of a job, which is reported before the job ends. */
    reported: (path: RelativePath, outcome: Outcome): void =>
      change(path, { isParked: outcome === "parked", isSent: true }),
    /** Records that the service accepted a job's version, though nobody waits for its result. */
    sent: (path: RelativePath): void => change(path, { isSent: true }),
    end: (entry: ScanEntry): EndedJob | undefined => {
      const job = remove(entry.path);
      if (job === undefined) return undefined;
      for (const note of ended) note(entry);
      if (!job.isParked) jobs.delete(entry.path);
      return job;
    },
    hasJob,
    /** Reports whether the path has a job for this very entry. */
    isCurrent: (entry: ScanEntry): boolean => jobOf(entry.path)?.entry === entry,
    /** Returns the entry of a job whose file was not read yet. */
    queued: (path: RelativePath): ScanEntry | undefined =>
      sending.has(path) ? undefined : jobOf(path)?.entry,
    isSending: (path: RelativePath): boolean => sending.has(path),
    /** Since when a file with a job, or a parked one, waits. */
    sinceMs: (path: RelativePath): number | undefined => jobs.get(path)?.sinceMs,
    /** Reports whether the last job of a file without one parked it. It may be gone meanwhile. */
    isParked: (path: RelativePath): boolean => jobs.get(path)?.hasEnded === true,
    /** Returns the paths of files with jobs. */
    *jobPaths(): Iterable<RelativePath> {
      for (const [path, { hasEnded }] of jobs) if (!hasEnded) yield path;
    },
    hasJobs: (): boolean => sumOf(sizes) > 0,
    /** Takes a snapshot of them. */
    busyPaths: (): BusyPaths => openSnapshot(jobs, sending, busyFiles, ended),
    /** Returns the number of jobs, by how the rows of their files count. `countedNow` is asked about new files being sent. */
    counts: (countedNow: (path: RelativePath) => Counted): Record<Counted, number> => {
      const counts = { ...sizes };
      for (const path of sending)
        if (jobOf(path)?.counted === "nothing" && countedNow(path) !== "nothing") counts.nothing -= 1;
      return counts;
    },
    /** Since when the oldest waits, or is parked. `stillParked` reports whether it still is; it may be gone meanwhile. */
    oldestMs: openOldest(jobs, sizes),
  };
}

/** Opens a snapshot, which is among the listeners for what `ended` until it is closed. */
function openSnapshot(
  jobs: ReadonlyMap<RelativePath, Job>,
  sending: ReadonlySet<RelativePath>,
  busyFiles: ReturnType<typeof openInodeIndex>,
  ended: Set<(entry: ScanEntry) => void>,
) {
  const since = new Map<RelativePath, ScanEntry>();
  const sinceFiles = openInodeIndex();
  const note = (entry: ScanEntry): void => {
    since.set(entry.path, entry);
    sinceFiles.add(entry);
  };
  ended.add(note);
  return {
    has: (path: RelativePath): boolean => jobs.get(path)?.hasEnded === false || since.has(path),
    /** Returns those that had a row when they were planned, or may have received one since, as of now. */
    *known(): Iterable<RelativePath> {
      for (const [path, { counted, hasEnded }] of jobs)
        if (!hasEnded && (counted !== "nothing" || sending.has(path))) yield path;
    },
    /**
     * Returns where a file with this inode is in flight, or was when the snapshot was taken, under another path. `isSame`
     * decides whether it was renamed since, and perhaps edited, or its inode number was reused. A path whose job has not
     * ended comes first.
     */
    otherPath: (entry: ScanEntry, isSame: (busy: ScanEntry) => boolean): RelativePath | undefined => {
      const isOther = (each: ScanEntry): boolean => each.path !== entry.path && isSame(each);
      const found = busyFiles.get(entry.ino).find(isOther) ?? sinceFiles.get(entry.ino).find(isOther);
      return found?.path;
    },
    /**
     * Returns those in the scope of a scan at which the scan saw another file than the one in flight, or none: what
     * happened there may have caused no event. `seen` are its entries at these paths.
     */
    changed: function* (
      seen: readonly ScanEntry[],
      inScope: (path: RelativePath) => boolean,
    ): Steps<readonly RelativePath[]> {
      const found: RelativePath[] = [];
      const entries = new Map<RelativePath, ScanEntry>();
      const taken = [...since.values()];
      for (const { entry, hasEnded } of jobs.values()) if (!hasEnded) taken.push(entry);
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
    close: (): void => void ended.delete(note),
  };
}

/** Returns a function that finds since when the oldest job waits, or is parked. Removes parked jobs whose file is gone. */
function openOldest(
  jobs: Map<RelativePath, Job>,
  sizes: Readonly<Record<Counted, number>>,
): (stillParked: (path: RelativePath) => boolean) => number | undefined {
  /** How many files were parked at the last search for those that are gone. */
  let parkedBefore = 0;
  const countParked = (): number => jobs.size - sumOf(sizes);
  return (stillParked) => {
    if (countParked() > 2 * parkedBefore + GONE_MAX) {
      for (const [path, { hasEnded }] of jobs) if (hasEnded && !stillParked(path)) jobs.delete(path);
      parkedBefore = countParked();
    }
    for (const [path, { sinceMs, hasEnded }] of jobs) {
      if (!hasEnded || stillParked(path)) return sinceMs;
      jobs.delete(path);
    }
    return undefined;
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
