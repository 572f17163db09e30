import type { Outcome } from "../../ledger/activity.ts";
import type { Candidate, RelativePath, ScanEntry } from "../../plan/model.ts";
import { sameIdentity } from "../../plan/moves.ts";
import { type Counted, countedAs } from "../../plan/version.ts";
import { STEP_ITEMS, type Steps } from "../../../lib/steps.ts";

/** The files of a source that are planned and not done. Each is in the queue, or is being read or sent. */
export type Jobs = ReturnType<typeof openJobs>;

/**
 * A snapshot of the files with jobs that also includes whatever ends until it is closed: a pass decides and begins by
 * this one state. Nothing may begin before it is closed.
 */
export type BusyPaths = ReturnType<typeof openSnapshot>;

/** A file with a job. */
interface Job {
  readonly entry: ScanEntry;
  readonly sinceMs: number;
  counted: Counted;
  isOutdated: boolean;
  rereadMs: number | undefined;
  isParked: boolean;
  /** Paths to check when it has ended. */
  readonly followers: Set<RelativePath>;
  /** Its result was reported, or the service accepted it. */
  isSent: boolean;
}

/** A job that has ended. */
export type EndedJob = Readonly<Pick<Job, "isOutdated" | "isSent" | "rereadMs" | "followers">>;

/** Opens an empty list. */
export function openJobs() {
  const jobs = new Map<RelativePath, Job>();
  /** Since when files wait whose last job parked them. Some may be gone meanwhile. */
  const parked = new Map<RelativePath, number>();
  const sizes: Record<Counted, number> = { agreed: 0, failed: 0, trouble: 0, nothing: 0 };
  const sending = new Set<RelativePath>();
  const busyFiles = openInodeIndex();
  /** Collects what has ended, for each open snapshot. */
  const ended = new Set<(entry: ScanEntry) => void>();

  const hasJob = (path: RelativePath): boolean => jobs.has(path);
  const change = (path: RelativePath, facts: Partial<Job>): void => {
    const job = jobs.get(path);
    if (job !== undefined) Object.assign(job, facts);
  };
  const uncover = (path: RelativePath): Job | undefined => {
    const job = jobs.get(path);
    if (job !== undefined) sizes[job.counted] -= 1;
    if (job !== undefined) busyFiles.remove(job.entry);
    sending.delete(path);
    return job;
  };

  return {
    /** Begins jobs. A parked file that is tried again has waited since it was first planned. */
    queue: (candidates: readonly Candidate[], nowMs: number): void => {
      for (const { entry, known } of candidates) {
        const before = uncover(entry.path);
        const fresh = {
          sinceMs: parked.get(entry.path) ?? nowMs,
          followers: new Set<string>(),
          isOutdated: false,
        };
        const { sinceMs, followers, isOutdated } = before ?? fresh;
        const counted = countedAs(known?.state);
        const rest = { rereadMs: undefined, isParked: false, isSent: false };
        parked.delete(entry.path);
        jobs.set(entry.path, { entry, sinceMs, followers, isOutdated, counted, ...rest });
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
    isOutdated: (path: RelativePath): boolean => jobs.get(path)?.isOutdated === true,
    /** Records that the row of a job's path, if it has one, counts as unsure from here on. */
    uncount: (path: RelativePath): void => {
      const job = jobs.get(path);
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
    end: ({ path }: ScanEntry): EndedJob | undefined => {
      const job = uncover(path);
      jobs.delete(path);
      if (job?.isParked === true) parked.set(path, job.sinceMs);
      if (job !== undefined) for (const note of ended) note(job.entry);
      return job;
    },
    hasJob,
    /** Has a path checked when another one's job has ended. Returns false if it has ended already. */
    checkAfter: (busyPath: RelativePath, path: RelativePath): boolean =>
      jobs.get(busyPath)?.followers.add(path) !== undefined,
    /** Reports whether the path has a job for this very entry. */
    isCurrent: (entry: ScanEntry): boolean => jobs.get(entry.path)?.entry === entry,
    /** Returns the entry of a job whose file was not read yet. */
    queued: (path: RelativePath): ScanEntry | undefined =>
      sending.has(path) ? undefined : jobs.get(path)?.entry,
    isSending: (path: RelativePath): boolean => sending.has(path),
    /** Reports whether any file is being read or sent. */
    isAnySending: (): boolean => sending.size > 0,
    /** Since when a file with a job, or a parked one, waits. */
    sinceMs: (path: RelativePath): number | undefined => jobs.get(path)?.sinceMs ?? parked.get(path),
    /** Reports whether the last job of a file without one parked it. It may be gone meanwhile. */
    isParked: (path: RelativePath): boolean => parked.has(path),
    /** Returns the paths of files with jobs. */
    jobPaths: (): Iterable<RelativePath> => jobs.keys(),
    hasJobs: (): boolean => jobs.size > 0,
    /** Takes a snapshot of them. */
    busyPaths: (): BusyPaths => openSnapshot(jobs, sending, busyFiles, ended),
    /** Returns the number of jobs, by how the rows of their files count. `countedNow` is asked about new files being sent. */
    counts: (countedNow: (path: RelativePath) => Counted): Record<Counted, number> =>
      countsOf(jobs, sending, sizes, countedNow),
    /** Since when the oldest waits, or is parked. `stillParked` reports whether a parked file still is. */
    oldestMs: (stillParked: (path: RelativePath) => boolean): number | undefined =>
      oldestOf(jobs, parked, stillParked),
  };
}

function countsOf(
  jobs: ReadonlyMap<RelativePath, Job>,
  sending: ReadonlySet<RelativePath>,
  sizes: Readonly<Record<Counted, number>>,
  countedNow: (path: RelativePath) => Counted,
): Record<Counted, number> {
  const isCounted = (path: RelativePath): boolean =>
    jobs.get(path)?.counted === "nothing" && countedNow(path) !== "nothing";
  return { ...sizes, nothing: sizes.nothing - [...sending].filter(isCounted).length };
}

function oldestOf(
  jobs: ReadonlyMap<RelativePath, Job>,
  parked: Map<RelativePath, number>,
  stillParked: (path: RelativePath) => boolean,
): number | undefined {
  for (const path of parked.keys()) {
    if (stillParked(path)) break;
    parked.delete(path);
  }
  const [first] = parked.values();
  let oldest = first;
  for (const { sinceMs } of jobs.values()) oldest = Math.min(oldest ?? sinceMs, sinceMs);
  return oldest;
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
    has: (path: RelativePath): boolean => jobs.has(path) || since.has(path),
    /** Returns those that had a row when they were planned, or may have received one since, as of now. */
    *known(): Iterable<RelativePath> {
      for (const [path, { counted }] of jobs) if (counted !== "nothing" || sending.has(path)) yield path;
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
      const taken = [...since.values(), ...[...jobs.values()].map(({ entry }) => entry)];
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

/** Opens an index of files by inode number. Hard links share one. */
function openInodeIndex() {
  const files = new Map<number, readonly ScanEntry[]>();
  const get = (ino: number): readonly ScanEntry[] => files.get(ino) ?? [];
  return {
    get,
    add: (entry: ScanEntry): void => void files.set(entry.ino, [...get(entry.ino), entry]),
    remove: (entry: ScanEntry): void => {
      const left = get(entry.ino).filter((each) => each !== entry);
      if (left.length > 0) files.set(entry.ino, left);
      else files.delete(entry.ino);
    },
  };
}

/** Reports whether a file is unchanged since it was planned. */
function isAsTaken(taken: ScanEntry, now: ScanEntry | undefined): boolean {
  return now !== undefined && sameIdentity(taken, now) && taken.ctimeMs === now.ctimeMs;
}
