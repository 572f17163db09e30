import type { RelativePath, ScanEntry } from "../../plan/model.ts";
import type { Counted } from "../../plan/version.ts";
import { type Due, openChecks } from "./checks.ts";
import { openJobs } from "./jobs.ts";
import { openRestDetector } from "./settle.ts";

/**
 * The state of a path of a source.
 *
 * | State | Meaning | Begins with | Ends with |
 * | --- | --- | --- | --- |
 * | at rest | this process knows of nothing to do | | |
 * | waiting | it is checked at a later time: a retry | `checkAgain`, `rested` | `take`, `event` |
 * | missing | a row without a file; its delete waits for the end of a burst | `miss` | `decide`, `forgetMissing` |
 * | settling | it is checked soon: something happened | `event`, `checkAgain`, `rested` | `take` |
 * | checking | a pass has taken it | `take` | `endPass` |
 * | queued | its job waits for its turn, or for the end of a pause | `queue` | `send`, `end`, `event`, `drop` |
 * | sending | its file is being read or sent | `send` | `end` |
 *
 * A check may be due whatever else is known of a path: an event arrives during a pass, a file is parked just before its job
 * ends. `stateOf` then returns the last of the table's states that apply.
 *
 * Not included: deletes, which concern rows, of which one path may have several (`source-deletes.ts`); files that wait until
 * the service has shown what it does with one, which a check of the whole source finds again (`contact.ts`); and whatever outlives the process, which
 * is the state of the path's row in the ledger.
 */
export type PathState = "at rest" | "waiting" | "missing" | "settling" | "checking" | "queued" | "sending";

/** What the service reads of a file: any of it, or only pictures, of which it may recognise text for hours. */
export type Reading = "all" | "pictures";

/** The states of a source's paths, and their transitions. Reads no clock: times are arguments. */
export type PathStates = ReturnType<typeof openPathStates>;

/** A row whose file is missing, and since when. */
export interface MissingRow {
  readonly id: number;
  readonly sinceMs: number;
}

/** File times that are further ahead than this are wrong. Such a file is read again only by checks of the whole source. */
const REREAD_MAX_MS = 60_000;

/** Opens a table in which every path is at rest. `onDue` is called with the time of each check. */
export function openPathStates(settleMs: number, onDue: (atMs: number) => void = () => undefined) {
  const checks = openChecks(settleMs, onDue);
  const rest = openRestDetector(settleMs);
  const jobs = openJobs();
  let checking: ReadonlySet<RelativePath> = new Set();
  const missing = new Map<RelativePath, MissingRow>();
  /** How many files in flight are missing, and since when no further one is. */
  let missingBusy = { count: 0, sinceMs: -Infinity };
  /** Paths to check when the job of another one has ended. */
  const followers = new Map<RelativePath, Set<RelativePath>>();
  const reading = new Map<RelativePath, Reading>();
  /** Files that are written to continually and are not read for some seconds, including those of the last `take`. They are few. */
  const heldBack = new Set<RelativePath>();
  const heldBackNow = (): RelativePath[] =>
    [...heldBack].filter((path) => !jobs.hasJob(path) && (checks.isDue(path) || checking.has(path)));
  /** Records that something happened at a path. One that is being sent is checked after that. */
  const event = (path: RelativePath, nowMs: number): void => {
    if (jobs.hasJob(path)) outdate(path, nowMs);
    else checks.settle(path, nowMs);
  };
  /** Records that the file's job has ended. Its own path is checked if something happened there since. */
  const end = (entry: ScanEntry, nowMs: number): void => {
    const { path } = entry;
    const ended = jobs.end(entry);
    rest.ended(path, nowMs, ended);
    if (ended?.isOutdated === true) event(path, nowMs);
    for (const follower of followers.get(path) ?? []) event(follower, nowMs);
    followers.delete(path);
    const rereadMs = ended?.rereadMs ?? Infinity;
    if (rereadMs < nowMs + REREAD_MAX_MS) checkAgain(path, rereadMs, nowMs);
  };
  /** Ends a job that was not started, so that the newer version is queued by its own priority. */
  const outdate = (path: RelativePath, nowMs: number): void => {
    jobs.outdate(path);
    const entry = jobs.queued(path);
    if (entry !== undefined && !rest.isOverdue(path)) end(entry, nowMs);
  };
  /** Has a path checked at `atMs`, or sooner. One with a job that would be checked soon is checked after it. */
  const checkAgain = (path: RelativePath, atMs: number, nowMs: number): void => {
    if (jobs.hasJob(path) && atMs <= nowMs + settleMs) outdate(path, nowMs);
    else checks.checkAt(path, atMs, nowMs);
  };

  return {
    ...checks,
    ...jobs,
    stateOf: (path: RelativePath): PathState => {
      if (jobs.hasJob(path)) return jobs.isSending(path) ? "sending" : "queued";
      if (checking.has(path)) return "checking";
      if (checks.isSettling(path)) return "settling";
      if (missing.has(path)) return "missing";
      return checks.isDue(path) ? "waiting" : "at rest";
    },
    /** Reports whether a path is settling or being checked, whatever else is known of it. */
    isBeingChecked: (path: RelativePath): boolean => checking.has(path) || checks.isSettling(path),
    /** Returns the paths that are not at rest. */
    paths: (): ReadonlySet<RelativePath> =>
      new Set([...jobs.jobPaths(), ...checks.due(), ...checking, ...missing.keys()]),
    event,
    checkAgain,
    /** Has a path checked now, also one with a job, so that a check is due which answers. */
    ask: (path: RelativePath, nowMs: number): void => {
      // A check finds by itself whether a file in flight has changed. The service may have read it for hours.
      if (!jobs.isSending(path)) outdate(path, nowMs);
      checks.checkAt(path, nowMs, nowMs);
    },
    /** Has a path checked when another one's job has ended. Returns false if it has ended already. */
    checkAfter: (busyPath: RelativePath, path: RelativePath): boolean => {
      if (!jobs.hasJob(busyPath)) return false;
      followers.set(busyPath, (followers.get(busyPath) ?? new Set()).add(path));
      return true;
    },
    take: (nowMs: number): Due | undefined => {
      for (const path of heldBack) if (!checks.isDue(path)) heldBack.delete(path);
      const due = checks.take(nowMs);
      if (due !== undefined) checking = new Set([...due.paths, ...missing.keys()]);
      return due;
    },
    /** Records that the pass has ended which took what was due. */
    endPass: (): void => {
      checking = new Set();
    },
    /** Reports whether a file may be read: see `RestDetector`. If not, it is checked again. */
    rested: (entry: ScanEntry, nowMs: number, wallMs?: number): boolean => {
      const atMs = rest.restsAtMs(entry, nowMs, wallMs);
      if (atMs === undefined) heldBack.delete(entry.path);
      else {
        if (checks.isRetry(atMs, nowMs)) heldBack.add(entry.path);
        checks.checkAt(entry.path, atMs, nowMs, true);
      }
      return atMs === undefined;
    },
    /** Reports whether a job is not dropped when something happens at its path: the file never rests, and is sent as it is. */
    isOverdue: rest.isOverdue,
    /** Records that a file changed while it was read. If that happens repeatedly, `rested` makes it wait longer. */
    torn: rest.torn,
    /** Records a row whose file is missing, until its delete is decided or the file is back. */
    miss: (path: RelativePath, id: number, sinceMs: number): void => void missing.set(path, { id, sinceMs }),
    decide: (path: RelativePath): void => void missing.delete(path),
    /** Forgets what is missing, because nothing may be decided now. It is found missing again, and waits again. */
    forgetMissing: (): void => missing.clear(),
    missing: (): ReadonlyMap<RelativePath, MissingRow> => missing,
    missBusy: (count: number, nowMs: number): void => {
      missingBusy = { count, sinceMs: count > missingBusy.count ? nowMs : missingBusy.sinceMs };
    },
    missingBusy: (): { readonly sinceMs: number } => missingBusy,
    end,
    /** Ends all jobs that were not started, because a pause begins or is over. The whole source is checked then. */
    drop: (nowMs: number): void => {
      for (const path of jobs.jobPaths()) {
        const entry = jobs.queued(path);
        if (entry !== undefined) end(entry, nowMs);
      }
    },
    /** Reports whether nothing is about to be checked, except retries and, with `butMissing`, what is missing. */
    isQuiet: ({ butMissing }: { readonly butMissing: boolean } = { butMissing: false }): boolean =>
      checks.isQuiet(butMissing ? (path) => missing.has(path) : undefined),
    /** Returns the number of files to send, by how their rows count. `countedNow` reads a path's row. */
    counts: (countedNow: (path: RelativePath) => Counted): Record<Counted, number> => {
      const counts = jobs.counts(countedNow);
      for (const path of heldBackNow()) counts[countedNow(path)] += 1;
      return counts;
    },
    /** Returns the files that `counts` counts. */
    toSend: (): Iterable<RelativePath> => [...jobs.jobPaths(), ...heldBackNow()],
    /** Records that the service has a file with a job and reads it, or no longer does. */
    setReading: (path: RelativePath, what: Reading | undefined): void =>
      void (what === undefined ? reading.delete(path) : reading.set(path, what)),
    reading: (path: RelativePath): Reading | undefined => reading.get(path),
    readingCount: (): number => reading.size,
  };
}
