import type { MountTrouble } from "../../wire/daemon.ts";
import { prepareLook, type Prepared } from "../actions/prepare.ts";
import { send } from "../actions/send.ts";
import type { ActionContext, ActionSource } from "../actions/context.ts";
import { openAdoption } from "../adopt/adopt.ts";
import { openAgenda } from "../agenda/agenda.ts";
import { openLossGuard, type Check, type LossGuard } from "../reconcile-service/loss.ts";
import type { SyncConfig } from "../../config/schema.ts";
import { type Counted, countedAs } from "../agenda/counted.ts";
import type { SourceRow } from "../ledger/sources.ts";
import type { Deletion } from "../ledger/intents.ts";
import { openPasses, rulesKeyOf, type Passes } from "../pass/pass.ts";
import type { Look, RelativePath, ScanEntry } from "../plan/model.ts";
import type { Send, WorkQueue } from "../queue/queue.ts";
import { openIgnoreWarnings } from "./ignore-warnings.ts";
import { mountTroubles, openMountWarnings } from "./mount-warnings.ts";
import { openPause } from "./pause.ts";
import { openSettler } from "../adopt/recover.ts";
import type { Rules } from "../rules/rules.ts";
import { openSourceDeletes } from "./source-deletes.ts";
import { isBelow } from "../disk/source-path.ts";
import { openUnderWay } from "../agenda/under-way.ts";
import { earliest, openWaits } from "./waits.ts";

/** Work of the queue: read and send a file, or delete a resource. */
export type Job =
  | { readonly kind: "look"; readonly source: SourceSync; readonly look: Look }
  | {
      readonly kind: "delete";
      readonly source: {
        delete(deletion: Deletion): Promise<void>;
        /** The job has ended, in whatever way. */
        done(job: Job): void;
      };
      readonly deletion: Deletion;
    };

/** What a source is doing, beyond what the ledger says of it. */
export interface SourceActivity {
  /** Files planned and not done whose row counts as nothing, or as one in agreement. */
  readonly backlog: number;
  /** How many of them have a row in agreement: an older version of theirs. */
  readonly backlogAgreed: number;
}

/** One source: from a hint that something changed to the jobs that bring it over. */
export interface SourceSync extends Pick<Passes, "preview"> {
  readonly id: number;
  readonly rules: Rules;
  /** Ends its requests. What changes the service does not leave under it while the source is paused. */
  readonly signal: AbortSignal;
  /** Look at this path, or at the whole source. */
  hint(path: RelativePath | undefined): void;
  /** Look at the whole source, to find what gave no hint. */
  rescan(): void;
  /** Settles what a former process left open, then looks at whatever was hinted at until stopped. */
  run(): Promise<void>;
  /** Reads and decides a job's file; undefined when nothing is to be sent. */
  prepare(look: Look): Promise<Prepared | undefined>;
  /**
   * Runs inside the transaction that makes the intents durable; returns what is to be sent after it, or dropped when it
   * will not be.
   */
  depart(prepared: Prepared): Pick<Send, "run" | "drop">;
  delete(deletion: Deletion): Promise<void>;
  /** A job has ended, in whatever way. */
  done(job: Job): void;
  activity(): SourceActivity;
  /** Writes down what it is doing, for other processes to read. Runs last in a group commit, so that it fits the rows. */
  readonly noteBacklog: () => void;
  /** Keeps a service that was reset from being filled again unasked. */
  readonly guard: LossGuard;
  /** Whether a file is being read or sent. */
  isBusy(path: RelativePath): boolean;
  /** A resource is to go whose intent is in the ledger. */
  deleteLater(deletion: Deletion): void;
  /** Whether the whole source was looked at in this run, so that all that is to be done is known. */
  isPlanned(): boolean;
  /** Since when the oldest change waits; undefined: none does, or only a person can tell what is to become of them. */
  oldestWaitingMs(): number | undefined;
  /** Whether files or deletes are planned and not done. */
  isSending(): boolean;
  /** Whether the folder is being looked at, or is to be now and not later; so too while a former process's end is settled. */
  isLooking(): boolean;
  /** Whether everything that was hinted at is done; while the source is paused, whether it was looked at. */
  isIdle(): boolean;
  isPaused(): boolean;
  /** Sends nothing until it is told to go on: what was planned is given up and found again then. */
  pause(): void;
  resume(): void;
  /** Sends deletes now that the service would not do, those at or below a path. Files are looked at as hinted. */
  retryDeletes(below: RelativePath | undefined): void;
  /** Looks at a path, or the whole source, now. A look that began after it has ended when `answered` has reached the number. */
  ask(below: RelativePath | undefined): number;
  answered(): number;
  /** Paths with something left to do, those at or below a path. */
  pending(below: RelativePath | undefined): RelativePath[];
  isPending(path: RelativePath): boolean;
  isUnderWay(path: RelativePath): boolean;
  /** What cannot be looked at: at a path, below it, or on the way to it. */
  unreadable(below: RelativePath | undefined): RelativePath[];
  /** Mounts below the folder that the last look found changed. */
  mounts(): readonly MountTrouble[];
  /** Looks for resources that are too many; true: look again when the source is idle. */
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
  /** The folders are to be watched anew: a whole scan found changes that nothing hinted at, or the folder is back. */
  readonly onUnwatched: () => void;
  /** Compares the source with the service's list; undefined where there is no list yet. */
  readonly compare: () => Promise<Check | undefined>;
  readonly onWarning: (error: Error) => void;
  /** The whole source was compared with the ledger, which took so many milliseconds. */
  readonly onRescanned?: (ms: number) => void;
  /** Something that `isIdle` or `activity` tells has changed. */
  readonly onChange: () => void;
}

/** How soon a folder that is missing or another one is looked at again. */
const ROOT_RETRY_MS = 10_000;
/** Times of files that lie further ahead than this are wrong. */
const REREAD_MAX_MS = 60_000;
/** A create that was sent again is looked for in the list this soon. */
const DOUBT_SOON_MS = 1000;
/** Where something was mounted or unmounted is looked at once more after this: it may be gone before a hint tells of it. */
const MOUNT_AGAIN_MS = 2000;

/** Opens a source. Nothing is read before `run`. */
export function openSource(options: SourceOptions): SourceSync {
  const { row, rules, sync, once, queue } = options;
  const waits = openWaits();
  const context: ActionContext = {
    ...options.context,
    report: (activity) => {
      waits.reported(activity.path, activity.outcome);
      options.context.report(activity);
    },
  };
  const { ledger, now } = context;
  const openedMs = now();
  /** Since when files are kept back until the place at the service is listed. */
  let adoptingSinceMs: number | undefined;
  const stopping = new AbortController();
  const underWay = openUnderWay();
  const agenda = openAgenda({ settleMs: sync.settleMs, underWay, now, once });
  const { dirty } = agenda;
  const hint = (path: RelativePath | undefined): void => agenda.hint(path);
  const lookAt = (atMs: number): void => agenda.lookAt(atMs);
  const warnOfMounts = openMountWarnings(rules, options.onWarning);
  const warnOfIgnoreFiles = openIgnoreWarnings(rules, options.onWarning);
  const pause = openPause(options.paused);
  /** Files whose times do not tell a later write yet, and when they will. */
  const rereads = new Map<RelativePath, number>();
  let recovered = false;
  let passing = false;
  /** What a pass has taken: no longer marked or missing, and not under way yet. */
  let inHand: ReadonlySet<RelativePath> = new Set();
  /** The whole source was looked at in this run: before that, nobody knows whether it rests. */
  let looked = false;
  /** The last look found the folder missing or another one: what watched it may watch nothing any more. */
  let halted = false;
  /** A rescan is due that nothing hinted at. */
  let periodic = false;

  const source: ActionSource = {
    id: row.id,
    root: rules.source.absolutePath,
    rules,
    rulesKey: rulesKeyOf(rules),
    isStale: (path) => {
      // What was read for sending is given up while the source is paused, and looked at again.
      if (pause.isPaused() || guard.isClosed()) underWay.outdate(path);
      return underWay.isOutdated(path);
    },
    isPaused: () => pause.isPaused(),
    lookAgain: (path, atMs) => agenda.lookAgain(path, atMs),
    rereadAt: (path, atMs) => rereads.set(path, now() + Math.max(0, atMs - Date.now())),
    lookAgainTorn: (path) => agenda.lookAgainTorn(path),
    mayRemake: (id) => guard.mayRemake(id),
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
    lookAt,
    onWarning: options.onWarning,
  });
  const adoption = openAdoption({
    context,
    source,
    once,
    signal: stopping.signal,
    underWay,
    onLoss: (reason) => guard.hold(reason),
    onMissing: (rows) => guard.allow(rows),
    lookAt,
    onWarning: options.onWarning,
  });
  context.collections.onMoved((tier) => {
    if (tier === rules.source.collection) guard.suspect();
  });
  context.mails.onBegin(() => lookAt(now()));
  const settler = openSettler({
    context,
    source,
    stopped: stopping.signal,
    once,
    onWarning: options.onWarning,
    isAdopting: () => adoption.isSought(),
    isBusy: (path) => underWay.has(path),
  });
  const passes = openPasses({
    source,
    context,
    sync,
    once,
    dirty,
    busyPaths: () => underWay.asOfNow(),
    lookAfter: (busyPath, path) => underWay.lookAfter(busyPath, path),
    signal: stopping.signal,
  });
  /** Whether something happened at a path, or at a folder on the way to it, that is not done yet; or its file is parked. */
  const isAwaited = (path: RelativePath): boolean => {
    if (underWay.has(path)) return true;
    const hasNews = (at: RelativePath): boolean => inHand.has(at) || dirty.isMarked(at, { asRetry: false });
    for (let at = path; at !== ""; at = at.slice(0, Math.max(0, at.lastIndexOf("/"))))
      if (hasNews(at)) return true;
    // In one pass the time at which it is tried again is not on the agenda.
    if (!dirty.isMarked(path) && !waits.wasParked(path)) return false;
    ledger.flush();
    return ledger.files.living(row.id, path)?.state === "parked";
  };
  const deletes = openSourceDeletes({
    row,
    context,
    source,
    underWay,
    once,
    isHeld: () => pause.isPaused() || guard.isClosed(),
    isAwaited,
    push: (deletions) => {
      waits.beginDeletes(deletions, now());
      queue.push(
        deletions.map((deletion) => ({ kind: "delete", source: self, deletion })),
        { last: true },
      );
    },
    wakeAt: (atMs) => agenda.wakeAt(atMs),
  });
  /** Those whose row has come to be counted since, while their job is ending. */
  const countedSince = (): number => {
    let count = 0;
    for (const path of underWay.inTransit())
      if (countedAs(ledger.files.living(row.id, path)?.state) !== "nothing") count += 1;
    return count;
  };
  /** Files that are not read before some seconds are over, since they are written to all the time, by what their rows count as. */
  const heldBack = (): Record<Counted, number> => {
    const counts = { agreed: 0, trouble: 0, nothing: 0 };
    // While it is paused they are among what the looks found.
    if (pause.isPaused()) return counts;
    for (const path of dirty.heldBack())
      if (!underWay.has(path) && (dirty.isMarked(path) || inHand.has(path)))
        counts[countedAs(ledger.files.living(row.id, path)?.state)] += 1;
    return counts;
  };
  const noteBacklog = (): void => {
    const { backlog, backlogAgreed } = self.activity();
    ledger.sources.setBacklog(row.id, backlog, backlogAgreed);
    ledger.sources.setCompared(row.id, looked);
  };
  const beginLooks = (looks: readonly Look[]): void => {
    underWay.begin(looks);
    waits.begin(looks, now());
    if (looks.length > 0) {
      // Before any of them is acknowledged, or the ledger would tell other processes of an agreement too early.
      ledger.noteLast(noteBacklog);
    }
    queue.push(looks.map((look) => ({ kind: "look", source: self, look })));
  };
  /** Whether a scan met an ignore file that must settle first: then the whole source is looked at again. */
  const awaitsIgnoreFile = (): boolean => {
    const rest = rules.takeIgnoreRest();
    if (rest !== undefined) agenda.awaitIgnoreFile(rest);
    return rest?.isOverdue === false;
  };
  const endLook = (entry: ScanEntry): void => {
    dirty.ended(entry.path, now());
    for (const path of underWay.end(entry)) hint(path);
    const rereadMs = rereads.get(entry.path);
    rereads.delete(entry.path);
    // One whose times lie in the future is read again by whole looks alone.
    if (rereadMs !== undefined && rereadMs < now() + REREAD_MAX_MS) agenda.lookAgain(entry.path, rereadMs);
  };
  const pass = async (): Promise<void> => {
    const due = dirty.take(now());
    if (due === undefined) return;
    inHand = new Set([...due.paths, ...passes.missing().keys()]);
    const answers = agenda.asked();
    if (pause.isPaused()) {
      passes.forgetMissing();
      const unsent = await passes.unsent(due);
      // It goes on already: the look that came with that finds all of it again, and answers.
      if (!pause.isPaused()) return;
      pause.note(unsent);
      if (due.all) looked = true;
      if (!awaitsIgnoreFile()) agenda.answer(answers);
      return;
    }
    if (!(await guard.ready())) {
      passes.forgetMissing();
      // Before the list has told whether something is lost, nobody knows what is to be sent.
      if (ledger.drift.loss(row.id) !== undefined) {
        looked ||= due.all;
        agenda.answer(answers);
      }
      lookAt(guard.nextLookMs());
      return;
    }
    const startMs = now();
    const plan = await passes.plan(due);
    if (due.all) options.onRescanned?.(now() - startMs);
    if (plan.halted && !once) dirty.markAll(now() + ROOT_RETRY_MS, now());
    if (plan.halted) {
      halted = true;
      looked ||= due.all;
      agenda.answer(answers);
      return;
    }
    warnOfMounts(rules.mounts?.closed() ?? []);
    for (const path of rules.mounts?.takeMoved() ?? []) agenda.lookAgain(path, now() + MOUNT_AGAIN_MS);
    warnOfIgnoreFiles(due.all);
    if (plan.newRoot) adoption.again();
    const isAwaiting = awaitsIgnoreFile();
    // Files look for their resources all at once, so those that cannot be seen yet are waited for.
    const isPostponed = isAwaiting && adoption.isSeeking();
    const admitted = isPostponed ? [] : await adoption.admit(plan.looks, due.all);
    adoptingSinceMs = admitted.length < plan.looks.length ? (adoptingSinceMs ?? startMs) : undefined;
    beginLooks(admitted);
    deletes.begin(plan.deletions);
    if (due.all) deletes.beginLeft();
    // Only now is everything counted that waits.
    if (due.all && !isPostponed) looked = true;
    if (halted || (plan.newFiles && periodic && due.all)) options.onUnwatched();
    halted = false;
    if (due.all) periodic = false;
    // What was not admitted comes again by another look.
    if (admitted.length === plan.looks.length && !isAwaiting) agenda.answer(answers);
  };
  const loop = async (): Promise<void> => {
    while (!stopping.signal.aborted) {
      const nextMs = dirty.nextDueMs();
      if (nextMs !== undefined && nextMs <= now()) {
        passing = true;
        await pass();
        passing = false;
        inHand = new Set();
        deletes.beginPutOff();
        context.moved();
        continue;
      }
      if (nextMs !== undefined) agenda.wakeAt(nextMs);
      if (!pause.isPaused()) deletes.beginDue();
      options.onChange();
      await agenda.time();
    }
  };

  const self: SourceSync = {
    id: row.id,
    rules,
    signal: context.signal,
    hint,
    rescan: () => {
      periodic = true;
      hint(undefined);
    },
    preview: (before) => passes.preview(before),
    run: async () => {
      // What is known of the folder is a former process's.
      ledger.note(() => ledger.sources.setCompared(row.id, false));
      await settler.recover();
      recovered = true;
      await loop();
    },
    prepare: async (look) => {
      underWay.travel(look.entry.path);
      return source.isStale(look.entry.path) ? undefined : prepareLook(context, source, look);
    },
    noteBacklog,
    depart: (prepared) => {
      const departure = prepared.write();
      // The row is `unsure` from here on.
      if (departure.intent === undefined) underWay.uncount(departure.look.entry.path);
      const { intent } = departure;
      return {
        run: (yieldSlot) => send({ ...context, yieldSlot }, source, departure),
        drop: () => {
          // It never left, so the next start need not ask what became of it.
          // One that was taken up again is in doubt as before.
          if (intent === undefined) return;
          ledger.note(() =>
            intent.attempts > 1 ? ledger.intents.doubt(intent.id, null) : ledger.intents.remove(intent.id),
          );
        },
      };
    },
    delete: (deletion) => deletes.send(deletion),
    done: (job) => {
      if (job.kind === "delete") waits.endDelete(job.deletion);
      else waits.end(job.look.entry.path);
      if (job.kind === "delete") underWay.endDelete(job.deletion);
      else endLook(job.look.entry);
      deletes.beginPutOff(job.kind === "delete" ? job.deletion.path : job.look.entry.path);
      // One file was sent alone, or what was on its way has arrived.
      if (adoption.isPending()) lookAt(now());
      options.onChange();
    },
    activity: () => {
      const { agreed, nothing } = heldBack();
      const size = underWay.size() - countedSince() + agreed + nothing;
      return {
        // While it is paused, what waits for the adoption is among what was counted.
        backlog: size + (pause.isPaused() ? pause.size() : adoption.waiting()),
        backlogAgreed: underWay.agreed() + pause.agreed() + agreed,
      };
    },
    guard,
    isBusy: (path) => underWay.has(path),
    deleteLater: (deletion) => deletes.begin([{ ...deletion, isSpare: true }]),
    isPlanned: () => looked,
    oldestWaitingMs: () => {
      if (pause.isPaused() || ledger.drift.loss(row.id) !== undefined) return undefined;
      const isParked = (path: RelativePath): boolean => ledger.files.living(row.id, path)?.state === "parked";
      return earliest(
        recovered && looked ? undefined : openedMs,
        dirty.oldestMs(),
        waits.oldestMs(isParked),
        adoption.waiting() > 0 ? adoptingSinceMs : undefined,
      );
    },
    isSending: () => !underWay.isEmpty(),
    isLooking: () => {
      const nextMs = dirty.nextDueMs();
      return !recovered || passing || (nextMs !== undefined && nextMs <= now());
    },
    isIdle: () => recovered && looked && !passing && dirty.isQuiet() && underWay.isEmpty(),
    isPaused: () => pause.isPaused(),
    pause: () => {
      if (pause.isPaused()) return;
      pause.begin();
      // So that everything that waits is counted, wherever it waited.
      hint(undefined);
    },
    resume: () => {
      if (!pause.isPaused()) return;
      pause.end();
      // Of those put aside whose time came meanwhile nobody would be reminded.
      ledger.note(() => ledger.operator.unpark(row.id, now()));
      hint(undefined);
    },
    retryDeletes: (below) => deletes.retry(below),
    ask: (below) => agenda.ask(below),
    answered: () => agenda.answered(),
    pending: (below) => {
      const paths = new Set([
        ...underWay.paths(),
        ...dirty.marked(),
        ...pause.paths(),
        ...passes.missing().keys(),
        ...inHand,
      ]);
      return [...paths].filter((path) => isBelow(path, below));
    },
    isUnderWay: (path) => underWay.touches(path),
    unreadable: (below) =>
      [...passes.unreadable()].filter(
        (path) => isBelow(path, below) || path === "" || (below !== undefined && isBelow(below, path)),
      ),
    mounts: () => mountTroubles(rules),
    isPending: (path) =>
      underWay.touches(path) ||
      dirty.isMarked(path) ||
      pause.has(path) ||
      passes.missing().has(path) ||
      inHand.has(path),
    checkDoubts: () => settler.checkDoubts(),
    stop: () => {
      stopping.abort(new Error("the daemon is stopping"));
      settler.stop();
      agenda.stop();
    },
  };
  return self;
}
