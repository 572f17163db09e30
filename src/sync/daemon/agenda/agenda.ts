import type { Candidate, RelativePath, ScanEntry } from "../../plan/model.ts";
import type { Counted } from "../../plan/version.ts";
import type { IgnoreRest } from "../../scan/rules/ignore-settling.ts";
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

/** The states of a source's paths and their transitions, the alarm of its loop, and who waits for a check. */
export type Agenda = ReturnType<typeof openAgenda>;

interface AgendaOptions {
  /** How long a path must have rested. */
  readonly settleMs: number;
  readonly now: () => number;
  /** One pass: a check that is due much later is left to the next. */
  readonly once: boolean;
  /** Ends the job of a file that is being sent, unless its request has left. */
  readonly withdraw?: (path: RelativePath) => void;
}

/** A row whose file is missing, and since when. */
interface MissingRow {
  readonly id: number;
  readonly sinceMs: number;
}

/** File times that are further ahead than this are wrong. Such a file is read again only by checks of the whole source. */
const REREAD_MAX_MS = 60_000;

/** A single pass leaves checks that are due later than this to the next. */
const ONCE_PATIENCE_MS = 5000;

/** Opens an agenda in which every path is at rest. */
export function openAgenda({ settleMs, now, once, withdraw }: AgendaOptions) {
  const alarm = openAlarm(now);
  const checks = openChecks(settleMs, alarm.set);
  const rest = openRestDetector(settleMs);
  const jobs = openJobs();
  /** Rows whose file is missing, until their delete is decided or the file is back. */
  const missing = new Map<RelativePath, MissingRow>();
  /** How many files in flight are missing, and since when no further one is. */
  let missingBusy = { count: 0, sinceMs: -Infinity };
  let checking: ReadonlySet<RelativePath> = new Set();
  /** Files that are written to continually and are not read for some seconds, including those of the last `take`. They are few. */
  const heldBack = new Set<RelativePath>();
  const heldBackNow = (): RelativePath[] =>
    [...heldBack].filter((path) => !jobs.hasJob(path) && (checks.isDue(path) || checking.has(path)));
  const reading = new Map<RelativePath, Reading>();
  let asked = 0;
  let answered = 0;

  const isInTime = (atMs: number): boolean => !once || atMs <= now() + ONCE_PATIENCE_MS;
  /** Records that something happened at a path. One that is being sent is checked after that. */
  const event = (path: RelativePath): void => {
    if (jobs.hasJob(path)) outdate(path);
    else checks.settle(path, now());
  };
  /** Records that a file's job has ended. Its own path is checked if something happened there since. */
  const end = (entry: ScanEntry): void => {
    const { path } = entry;
    const ended = jobs.end(entry);
    rest.ended(entry, now(), ended);
    if (ended?.isOutdated === true) event(path);
    for (const follower of ended?.followers ?? []) event(follower);
    const rereadMs = ended?.rereadMs ?? Infinity;
    if (rereadMs < now() + REREAD_MAX_MS) checkAgain(path, rereadMs);
  };
  /** Ends a job that was not started, so that the newer version is queued by its own priority. */
  const outdate = (path: RelativePath): void => {
    jobs.outdate(path);
    const entry = jobs.queued(path);
    if (entry !== undefined && !rest.isOverdue(path)) end(entry);
  };
  /**
   * Has a path checked once it has rested, or at `atMs`, or sooner. One with a job that would be checked soon is checked after
   * it.
   */
  const checkAgain = (path: RelativePath, atMs = now() + settleMs): void => {
    if (!isInTime(atMs)) return;
    if (jobs.hasJob(path) && atMs <= now() + settleMs) outdate(path);
    else checks.checkAt(path, atMs, now());
  };

  return {
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
    due: checks.due,
    isDue: checks.isDue,
    nextDueMs: checks.nextDueMs,
    /** Reports whether nothing is about to be checked, except retries and, with `butMissing`, what is missing. */
    isQuiet: ({ butMissing }: { readonly butMissing: boolean } = { butMissing: false }): boolean =>
      checks.isQuiet(butMissing ? (path) => missing.has(path) : undefined),
    event,
    checkAgain,
    end,
    /** Begins jobs. A parked file that is tried again has waited since it was first planned. */
    queue: (candidates: readonly Candidate[]): void => jobs.queue(candidates, now()),
    /** Records that something happened at this path, or anywhere in the source. */
    hint: (path: RelativePath | undefined): void => {
      if (path === undefined) checks.checkAll(now(), now());
      else {
        event(path);
        if (jobs.isSending(path) && !rest.isOverdue(path)) withdraw?.(path);
      }
    },
    /** Schedules a check of the whole source. */
    scanAt: (atMs: number): void => checks.checkAll(atMs, now()),
    /** Schedules a check of the whole source for when a changed ignore file has settled. Nothing is idle before. */
    awaitIgnoreFile: ({ atMs, isOverdue }: IgnoreRest): void => checks.checkAll(atMs, now(), !isOverdue),
    /** Checks again a file that changed while it was read. If that happens repeatedly, `rested` makes it wait longer. */
    checkTorn: (path: RelativePath): void => {
      rest.torn(path, now());
      checkAgain(path);
    },
    /** Has a path read again at a time, after its job. */
    rereadAt: (path: RelativePath, atMs: number): void => {
      if (isInTime(atMs)) jobs.rereadAt(path, atMs);
    },
    /** Takes what is due. `endPass` records that the pass has ended which took it. */
    take: (): Due | undefined => {
      for (const path of heldBack) if (!checks.isDue(path)) heldBack.delete(path);
      const due = checks.take(now());
      if (due !== undefined) checking = new Set([...due.paths, ...missing.keys()]);
      return due;
    },
    endPass: (): void => {
      checking = new Set();
    },
    /** Reports whether a file may be read: see `RestDetector`. If not, it is checked again. */
    rested: (entry: ScanEntry, wallMs?: number): boolean => {
      const atMs = rest.restsAtMs(entry, now(), wallMs);
      if (atMs === undefined) heldBack.delete(entry.path);
      else {
        if (checks.isRetry(atMs, now())) heldBack.add(entry.path);
        checks.checkAt(entry.path, atMs, now(), true);
      }
      return atMs === undefined;
    },
    /** Reports whether a job is not dropped when something happens at its path: the file never rests, and is sent as it is. */
    isOverdue: rest.isOverdue,
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
    /** Ends all jobs that were not started, because a pause begins or is over. The whole source is checked then. */
    drop: (): void => {
      for (const path of jobs.jobPaths()) {
        const entry = jobs.queued(path);
        if (entry !== undefined) end(entry);
      }
    },
    miss: (path: RelativePath, id: number): void => void missing.set(path, { id, sinceMs: now() }),
    decide: (path: RelativePath): void => void missing.delete(path),
    /** Forgets what is missing, because nothing may be decided now. It is found missing again, and waits again. */
    forgetMissing: (): void => missing.clear(),
    missing: (): ReadonlyMap<RelativePath, MissingRow> => missing,
    missBusy: (count: number): void => {
      missingBusy = { count, sinceMs: count > missingBusy.count ? now() : missingBusy.sinceMs };
    },
    missingBusy: (): { readonly sinceMs: number } => missingBusy,
    /**
     * Checks a path, or the whole source, now, also a path with a job. A check that began later has ended when `answered` has
     * reached the returned number.
     */
    ask: (below: RelativePath | undefined): number => {
      asked += 1;
      if (below === undefined) checks.checkAll(now(), now());
      else {
        // A check finds by itself whether a file in flight has changed. The service may have read it for hours.
        if (!jobs.isSending(below)) outdate(below);
        checks.checkAt(below, now(), now());
      }
      return asked;
    },
    /** The newest number given out: what a check that begins now will have answered. */
    asked: (): number => asked,
    /** Records the end of a check that began when `asked` was this. */
    answer: (upTo: number): void => {
      answered = upTo;
    },
    answered: (): number => answered,
    /** Wakes the loop at a time, or sooner. */
    wakeAt: alarm.set,
    /** Resolves when the loop is due. */
    time: alarm.fires,
    /** Wakes the loop now, and clears the timer. */
    stop: alarm.stop,
  };
}

/** Opens the timer of a loop, without a time. It fires at the earliest time that is set. */
export function openAlarm(now: () => number) {
  let timer: { readonly handle: NodeJS.Timeout; readonly firesMs: number } | undefined;
  let wake: (() => void) | undefined;
  let fired = false;
  let stopped = false;
  const fire = (): void => {
    timer = undefined;
    fired = true;
    wake?.();
  };
  return {
    set: (atMs: number): void => {
      const delayMs = Math.max(0, atMs - now());
      // By the timers' own clock: the other one may have been set forward since the timer was set.
      const firesMs = performance.now() + delayMs;
      if (stopped || (timer !== undefined && timer.firesMs <= firesMs)) return;
      clearTimeout(timer?.handle);
      timer = { handle: setTimeout(fire, delayMs), firesMs };
    },
    /** Resolves when it fires; at once if it fired since the last call. */
    fires: async (): Promise<void> => {
      if (!fired) {
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
      wake = undefined;
      fired = false;
    },
    /** Fires, and clears the timer. */
    stop: (): void => {
      stopped = true;
      clearTimeout(timer?.handle);
      fire();
    },
  };
}
