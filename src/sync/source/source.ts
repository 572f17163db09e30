import { earliest } from "../../lib/earliest.ts";
import type { MountTrouble } from "../../wire/daemon.ts";
import { prepareFile, type Prepared } from "../actions/prepare.ts";
import { send } from "../actions/send.ts";
import type { ActionContext, ActionSource } from "../actions/context.ts";
import { openAdoption } from "../adopt/adopt.ts";
import { openAgenda } from "../agenda/agenda.ts";
import { openLossGuard, type Check, type LossGuard } from "../reconcile-service/loss.ts";
import type { SyncConfig } from "../../config/schema.ts";
import { type Counted, countedAs } from "../agenda/jobs.ts";
import type { PathStates } from "../agenda/path-states.ts";
import type { SourceRow } from "../ledger/sources.ts";
import type { Deletion } from "../ledger/intents.ts";
import { openPasses, rulesKeysOf, type Passes } from "../pass/pass.ts";
import type { Candidate, RelativePath } from "../plan/model.ts";
import type { Send, WorkQueue } from "../queue/queue.ts";
import { openChecking } from "./checking.ts";
import { mountTroubles } from "./mount-warnings.ts";
import { openSettler } from "../adopt/recover.ts";
import type { Rules } from "../rules/rules.ts";
import { openSourceDeletes, type SourceDeletes } from "./source-deletes.ts";
import { isBelow } from "../disk/source-path.ts";

/** A job of the queue: read and send a file, or delete a resource. */
export type Job =
  | { readonly kind: "file"; readonly source: SourceSync; readonly candidate: Candidate }
  | {
      readonly kind: "delete";
      readonly source: {
        delete(deletion: Deletion): Promise<void>;
        /** Called when the job has ended, in whatever way. */
        done(job: Job): void;
      };
      readonly deletion: Deletion;
    };

/** What a source is doing, beyond what the ledger records. */
export interface SourceActivity {
  /** Number of files planned and not done whose row counts as nothing, or as one in agreement. */
  readonly backlog: number;
  /** Number of them that have a row in agreement: an older version of theirs. */
  readonly backlogAgreed: number;
}

/** One source: from an event to the jobs that bring the change over. */
export interface SourceSync extends Pick<Passes, "preview"> {
  readonly id: number;
  readonly rules: Rules;
  /** Ends its requests. What changes the service does not leave under it while the source is paused. */
  readonly signal: AbortSignal;
  /** Has this path, or the whole source, checked. */
  hint(path: RelativePath | undefined): void;
  /** Checks the whole source, to find changes without an event. */
  rescan(): void;
  /** Settles what a former process left open, then checks whatever is marked until stopped. */
  run(): Promise<void>;
  /** Reads a job's file and decides; undefined if nothing must be sent. */
  prepare(candidate: Candidate): Promise<Prepared | undefined>;
  /**
   * Runs inside the transaction that makes the intents durable. Returns what must be sent after it, or dropped if it
   * will not be.
   */
  depart(prepared: Prepared): Pick<Send, "run" | "drop">;
  delete(deletion: Deletion): Promise<void>;
  /** Called when a job has ended, in whatever way. */
  done(job: Job): void;
  activity(): SourceActivity;
  /**
   * Records what it is doing, for other processes to read. Runs last in a group commit, so that it matches the rows.
   */
  readonly noteBacklog: () => void;
  /** Keeps a service that was reset from being filled again without approval. */
  readonly guard: LossGuard;
  /** Reports whether a file is being read or sent. */
  isBusy(path: RelativePath): boolean;
  /** Deletes a resource whose intent is in the ledger. */
  deleteLater(deletion: Deletion): void;
  /** Reports whether the whole source was checked in this run, so that all work is known. */
  isPlanned(): boolean;
  /** Since when the oldest change waits; undefined: none does, or only a person can decide about them. */
  oldestWaitingMs(): number | undefined;
  /** Reports whether files or deletes are planned and not done. */
  isSending(): boolean;
  /** Reports whether the folder is being checked, or is due now; also while a former process's end is settled. */
  isScanning(): boolean;
  /** Reports whether everything that was marked is done; while the source is paused, whether it was checked. */
  isIdle(): boolean;
  isPaused(): boolean;
  /** Sends nothing until it is resumed. Planned work is given up and found again then. */
  pause(): void;
  resume(): void;
  /** Sends refused deletes at or below a path now. Files are checked as marked. */
  retryDeletes(below: RelativePath | undefined): void;
  /**
   * Checks a path, or the whole source, now. A check that began later has ended when `answered` has reached the
   * returned number.
   */
  ask(below: RelativePath | undefined): number;
  answered(): number;
  /** Returns paths at or below a path that are not done. */
  pending(below: RelativePath | undefined): RelativePath[];
  isPending(path: RelativePath): boolean;
  isInFlight(path: RelativePath): boolean;
  /** Returns what cannot be read at a path, below it, or on the way to it. */
  unreadable(below: RelativePath | undefined): RelativePath[];
  /** Returns mounts below the folder that the last check found changed. */
  mounts(): readonly MountTrouble[];
  /** Checks for surplus resources; true: check again when the source is idle. */
  checkDoubts(): Promise<boolean>;
  stop(): void;
}

export interface SourceOptions {
  readonly row: SourceRow;
  readonly rules: Rules;
  readonly sync: SyncConfig;
  readonly context: ActionContext;
  readonly queue: Pick<WorkQueue<Job>, "push">;
  readonly paused: boolean;
  /** One pass instead of a watch: deletes need not wait for a rename's other half, nor failures for later. */
  readonly once: boolean;
  /**
   * Notified when the folders must be watched anew: a whole scan found changes without an event, or the folder is back.
   */
  readonly onUnwatched: () => void;
  /** Compares the source with the service's list; undefined if there is no list yet. */
  readonly compare: () => Promise<Check | undefined>;
  readonly onWarning: (error: Error) => void;
  /** Notified after the whole source was compared with the ledger, with the duration in milliseconds. */
  readonly onRescanned?: (ms: number) => void;
  /** Notified when the result of `isIdle` or `activity` may have changed. */
  readonly onChange: () => void;
}

/** After a create was sent again, the list is checked this soon. */
const DOUBT_SOON_MS = 1000;

/** Opens a source. Reads nothing before `run`. */
export function openSource(options: SourceOptions): SourceSync {
  const { row, rules, sync, once, queue } = options;
  const { ledger, now } = options.context;
  const openedMs = now();
  const stopping = new AbortController();
  const agenda = openAgenda({ settleMs: sync.settleMs, now, once });
  const { states } = agenda;
  const context: ActionContext = {
    ...options.context,
    report: (activity) => {
      // A delete is that of an older file of the path.
      if (activity.action !== "delete") states.reported(activity.path, activity.outcome);
      options.context.report(activity);
    },
  };
  const hint = (path: RelativePath | undefined): void => agenda.hint(path);
  const scanAt = (atMs: number): void => agenda.scanAt(atMs);
  let paused = options.paused;
  const isPaused = (): boolean => paused;
  let recovered = false;

  const source: ActionSource = {
    id: row.id,
    root: rules.source.absolutePath,
    rules,
    rulesKey: rulesKeysOf(rules, () => options.context.capabilities.takesMetadata()),
    isStale: (path) => {
      // What was read for sending is given up while the source is paused, and checked again.
      if (paused || guard.isClosed()) states.outdate(path);
      return states.isOutdated(path);
    },
    isPaused,
    checkAgain: (path, atMs) => agenda.checkAgain(path, atMs),
    rereadAt: (path, atMs) => agenda.rereadAt(path, now() + Math.max(0, atMs - Date.now())),
    checkTorn: (path) => agenda.checkTorn(path),
    mayRecreate: (id) => guard.mayRecreate(id),
    settle: (intent) => settler.settle(intent),
    doubt: () => {
      if (!once) settler.checkDoubtsIn(DOUBT_SOON_MS);
    },
    deleteLater: (deletion) => deletes.begin([{ ...deletion, isSpare: true }]),
  };
  const guard = openLossGuard({
    source: row.id,
    context,
    once,
    check: options.compare,
    scanAt,
    onWarning: options.onWarning,
  });
  const adoption = openAdoption({
    context,
    source,
    once,
    signal: stopping.signal,
    isBusy: (path) => states.hasJob(path),
    isSending: () => isSending(),
    onLoss: (reason) => guard.hold(reason),
    onApproved: (rows) => guard.allow(rows),
    scanAt,
    onWarning: options.onWarning,
  });
  context.collections.onMoved((tier) => {
    if (tier === rules.source.collection) guard.suspect();
  });
  context.capabilities.onBegin(() => scanAt(now()));
  const settler = openSettler({
    context,
    source,
    stopped: stopping.signal,
    once,
    onWarning: options.onWarning,
    isAdopting: () => adoption.isAdopting(),
    isBusy: (path) => states.hasJob(path),
  });
  const passes = openPasses({ source, context, sync, once, states, signal: stopping.signal });
  /**
   * Reports whether something happened at a path, or at a folder on the way to it, that is not done yet; or whether its
   * file is parked.
   */
  const isAwaited = (path: RelativePath): boolean => {
    if (states.hasJob(path)) return true;
    for (let at = path; at !== ""; at = at.slice(0, Math.max(0, at.lastIndexOf("/"))))
      if (states.isBeingChecked(at)) return true;
    // In a single pass, the time of its retry is not on the agenda.
    if (!states.isDue(path) && !states.isParked(path)) return false;
    ledger.flush();
    return isParked(path);
  };
  const deletes = openSourceDeletes({
    row,
    context,
    source,
    once,
    isHeld: () => paused || guard.isClosed(),
    isAwaited,
    push: (deletions) => {
      queue.push(
        deletions.map((deletion) => ({ kind: "delete", source: self, deletion })),
        { last: true },
      );
    },
    wakeAt: (atMs) => agenda.wakeAt(atMs),
  });
  const isSending = (): boolean => states.hasJobs() || deletes.hasJobs();
  const isParked = (path: RelativePath): boolean => ledger.files.living(row.id, path)?.state === "parked";
  const countedNow = (path: RelativePath): Counted => countedAs(ledger.files.living(row.id, path)?.state);
  const noteBacklog = (): void => {
    const { backlog, backlogAgreed } = self.activity();
    ledger.sources.setBacklog(row.id, backlog, backlogAgreed);
    ledger.sources.setCompared(row.id, checking.isPlanned());
  };
  const begin = (candidates: readonly Candidate[]): void => {
    states.queue(candidates, now());
    if (candidates.length > 0) {
      // Before any of them is acknowledged; otherwise the ledger would show other processes an agreement too early.
      ledger.noteLast(noteBacklog);
    }
    queue.push(candidates.map((candidate) => ({ kind: "file", source: self, candidate })));
  };
  const checking = openChecking({
    ...options,
    context,
    agenda,
    passes,
    guard,
    adoption,
    deletes,
    isPaused,
    begin,
    stopped: stopping.signal,
  });
  const self: SourceSync = {
    id: row.id,
    rules,
    signal: context.signal,
    hint,
    rescan: () => checking.rescan(),
    preview: (before) => passes.preview(before),
    run: async () => {
      // What is known of the folder is a former process's.
      ledger.note(() => ledger.sources.setCompared(row.id, false));
      await settler.recover();
      recovered = true;
      await checking.run();
    },
    noteBacklog,
    ...departures(context, source, states),
    delete: (deletion) => deletes.send(deletion),
    done: (job) => {
      if (job.kind === "delete") deletes.end(job.deletion);
      else {
        agenda.end(job.candidate.entry);
        deletes.beginPutOff(job.candidate.entry.path);
      }
      // One file was sent alone, or the requests in flight have ended.
      if (adoption.isPending()) scanAt(now());
      options.onChange();
    },
    activity: () => {
      const { agreed, nothing } = states.counts(countedNow, paused);
      // While it is paused, what waits for the adoption is among what was counted.
      return { backlog: agreed + nothing + (paused ? 0 : adoption.waiting()), backlogAgreed: agreed };
    },
    guard,
    isBusy: (path) => states.hasJob(path),
    deleteLater: (deletion) => deletes.begin([{ ...deletion, isSpare: true }]),
    isPlanned: () => checking.isPlanned(),
    oldestWaitingMs: () => {
      if (paused || ledger.drift.loss(row.id) !== undefined) return undefined;
      return earliest(
        recovered && checking.isPlanned() ? undefined : openedMs,
        states.oldestMs(isParked),
        deletes.oldestMs(),
        adoption.waiting() > 0 ? checking.adoptingSinceMs() : undefined,
      );
    },
    isSending,
    isScanning: () => {
      const nextMs = states.nextDueMs();
      return !recovered || checking.isPassing() || (nextMs !== undefined && nextMs <= now());
    },
    isIdle: () =>
      recovered && checking.isPlanned() && !checking.isPassing() && states.isQuiet() && !isSending(),
    isPaused,
    pause: () => {
      if (paused) return;
      paused = true;
      // So that all pending work is counted, wherever it waited.
      hint(undefined);
    },
    resume: () => {
      if (!paused) return;
      paused = false;
      states.endPause();
      // Nothing else would find parked files whose time came meanwhile.
      ledger.note(() => ledger.operator.unpark(row.id, now()));
      hint(undefined);
    },
    retryDeletes: (below) => deletes.retry(below),
    ask: (below) => agenda.ask(below),
    answered: () => agenda.answered(),
    mounts: () => mountTroubles(rules),
    ...pathQueries(states, deletes, passes),
    checkDoubts: () => settler.checkDoubts(),
    stop: () => {
      stopping.abort(new Error("the daemon is stopping"));
      settler.stop();
      agenda.stop();
    },
  };
  return self;
}

/** Prepares and sends files. */
function departures(
  context: ActionContext,
  source: ActionSource,
  states: PathStates,
): Pick<SourceSync, "prepare" | "depart"> {
  const { ledger } = context;
  return {
    prepare: async (candidate) => {
      states.send(candidate.entry.path);
      return source.isStale(candidate.entry.path) ? undefined : prepareFile(context, source, candidate);
    },
    depart: (prepared) => {
      const departure = prepared.write();
      // The row is `unsure` from here on.
      if (departure.intent === undefined) states.uncount(departure.candidate.entry.path);
      const { intent } = departure;
      return {
        run: (yieldSlot) => send({ ...context, yieldSlot }, source, departure),
        drop: () => {
          // It never left, so the next start need not find out what became of it. A create that was resumed is in doubt
          // as before.
          if (intent === undefined) return;
          ledger.note(() =>
            intent.attempts > 1 ? ledger.intents.doubt(intent.id, null) : ledger.intents.remove(intent.id),
          );
        },
      };
    },
  };
}

/** What is pending at a path. */
function pathQueries(
  states: PathStates,
  deletes: Pick<SourceDeletes, "jobPaths" | "hasJob">,
  passes: Pick<Passes, "unreadable">,
): Pick<SourceSync, "pending" | "isInFlight" | "unreadable" | "isPending"> {
  return {
    pending: (below) =>
      [...new Set([...states.paths(), ...deletes.jobPaths()])].filter((path) => isBelow(path, below)),
    isInFlight: (path) => states.hasJob(path) || deletes.hasJob(path),
    unreadable: (below) =>
      [...passes.unreadable()].filter(
        (path) => isBelow(path, below) || path === "" || (below !== undefined && isBelow(below, path)),
      ),
    isPending: (path) => states.stateOf(path) !== "at rest" || deletes.hasJob(path),
  };
}
