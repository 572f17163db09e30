import type { SyncConfig } from "../../../config/schema/sync.ts";
import type { ActionContext, ActionSource } from "../../send/context.ts";
import { openContact, type Contact } from "../../identity/contact.ts";
import { openUnanswered } from "../../identity/unanswered.ts";
import { openAgenda, type Agenda } from "../agenda/agenda.ts";
import type { SourceRow } from "../../ledger/sources/rows.ts";
import { openPasses, type Passes } from "../pass/pass.ts";
import type { WorkQueue } from "../../send/queue/queue.ts";
import { rulesKeysOf } from "../pass/rules-key.ts";
import { sourceTag } from "../../plan/marker.ts";
import type { Deletion } from "../../ledger/intents/deletes.ts";
import type { Candidate, RelativePath } from "../../plan/model.ts";
import type { Rules } from "../../scan/rules/rules.ts";
import { openSourceDeletes, type SourceDeletes } from "./source-deletes.ts";
import { type FolderWarnings, openWarnings } from "./warnings.ts";

/** A job of the queue: read and send a file, or delete a resource. */
export type Job =
  | { readonly kind: "file"; readonly source: SourceParts; readonly candidate: Candidate }
  | { readonly kind: "delete"; readonly deletes: SourceDeletes; readonly deletion: Deletion };

/** Options of a source. */
export interface SourceOptions {
  readonly row: SourceRow;
  readonly rules: Rules;
  readonly sync: SyncConfig;
  readonly context: ActionContext;
  readonly queue: Pick<WorkQueue<Job>, "push"> & {
    /** Ends the job of a source's file that is prepared and not in flight: something happened to the file. */
    withdraw(source: number, path: RelativePath): void;
  };
  /** One pass instead of a watch: deletes need not wait for a rename's other half, nor failures for later. */
  readonly once: boolean;
  /**
   * Notified when the watch must restart: a whole scan found changes without an event, or the folder is back.
   */
  readonly onUnwatched: () => void;
  /** The id in the markers of its resources, and the tag of this installation. */
  readonly markerId: string;
  readonly writer: string;
  /** How far the service's list may lag behind its answers; 0: not at all. */
  readonly lagMs: number;
  readonly onWarning: (error: Error) => void;
  /** Notified after the whole source was compared with the ledger, with the duration in milliseconds. */
  readonly onRescanned?: (ms: number) => void;
  /** Notified when the result of `isIdle` or `activity` may have changed. */
  readonly onChange: () => void;
}

/** A source: what its actions depend on, its parts, and the state of its loop. */
export interface SourceParts extends ActionSource {
  readonly options: SourceOptions;
  /** Its requests end with its signal. What changes the service does not leave under it while the source is paused. */
  readonly context: ActionContext;
  readonly agenda: Agenda;
  readonly contact: Contact;
  readonly passes: Passes;
  readonly deletes: SourceDeletes;
  readonly problems: FolderWarnings;
  readonly state: SourceState;
  /** Aborts when the source is stopped. */
  readonly signal: AbortSignal;
  readonly stop: () => void;
}

/** The state of a source's loop. */
interface SourceState {
  isPaused: boolean;
  isPassing: boolean;
  /** The whole source was checked in this run. Before that, nobody knows whether it is idle. */
  isPlanned: boolean;
  /** The last check compared nothing. */
  isHalted: boolean;
  /** The last check found the folder missing or another one. Its watcher may watch nothing any more. */
  isRootLost: boolean;
  /** A periodic rescan is due that no event caused. */
  isPeriodic: boolean;
  readonly openedMs: number;
  /** Time of day at which the last check of the whole source began. */
  scannedMs: number | undefined;
  /** A check of the whole source was not answered, because files wait. Only another whole one answers. */
  isWholeOpen: boolean;
}

/** Opens the parts of a source. */
export function openSourceParts(options: SourceOptions): SourceParts {
  const { row, rules, sync, queue, once, onWarning } = options;
  const { ledger, now } = options.context;
  const stopping = new AbortController();
  const { signal } = stopping;
  const agenda = openAgenda({
    settleMs: sync.settleMs,
    now,
    once,
    withdraw: (path) => queue.withdraw(row.id, path),
  });
  const context: ActionContext = {
    ...options.context,
    report: (activity) => {
      // A delete is that of an older file of the path.
      if (activity.action !== "delete") agenda.reported(activity.path, activity.outcome);
      options.context.report(activity);
    },
  };
  const state: SourceState = {
    isPaused: row.paused,
    isPassing: false,
    isPlanned: false,
    isHalted: false,
    isRootLost: false,
    isPeriodic: false,
    scannedMs: undefined,
    openedMs: now(),
    isWholeOpen: false,
  };
  const isHeld = (): boolean => state.isPaused || contact.isClosed();
  const source: ActionSource = {
    id: row.id,
    root: rules.source.absolutePath,
    rules,
    signature: { source: sourceTag(options.markerId), writer: options.writer },
    rulesKey: rulesKeysOf(rules, () => options.context.capabilities.takesMetadata()),
    isStale: (path) => {
      // Files read for sending are dropped while the source is paused, and checked again.
      if (isHeld()) agenda.outdate(path);
      return agenda.isOutdated(path) && (isHeld() || !agenda.isOverdue(path));
    },
    agenda,
    isPaused: () => state.isPaused,
    mayRecreate: (docId) => contact.mayRecreate(docId),
    findCreated: (intent) => unanswered.findCreated(intent),
    compareLater: () => contact.compareLater(),
    deleteLater: (deletion) => deletes.begin([{ ...deletion, isSpare: true }]),
  };
  const shared = {
    context,
    source: {
      ...source,
      markerId: options.markerId,
      isBusy: (path: RelativePath) => agenda.hasJob(path),
      hint: (path: RelativePath | undefined) => agenda.hint(path),
    },
    lagMs: options.lagMs,
    once,
    signal,
    onWarning,
  };
  const contact = openContact({
    ...shared,
    isSending: () => agenda.hasJobs() || deletes.hasJobs(),
    scanAt: agenda.scanAt,
  });
  const unanswered = openUnanswered(shared);
  context.collections.onMoved((tier) => {
    if (tier === rules.source.collection) contact.suspect();
  });
  context.capabilities.onBegin(() => agenda.scanAt(now()));
  const passes = openPasses({ source, context, sync, once, agenda, signal });
  const deletes = openSourceDeletes({
    row,
    context,
    source,
    once,
    isHeld,
    isAwaited: (path) =>
      isAwaited(agenda, path, () => {
        ledger.flush();
        return ledger.files.living(row.id, path)?.state === "parked";
      }),
    push: (deletions) =>
      queue.push(
        deletions.map((deletion) => ({ kind: "delete", deletes, deletion })),
        { recent: true },
      ),
    wakeAt: (atMs) => agenda.wakeAt(atMs),
    onEnd: () => jobEnded({ options, contact, agenda }),
  });
  return {
    ...source,
    options,
    context,
    agenda,
    contact,
    passes,
    deletes,
    problems: openWarnings(rules, onWarning),
    state,
    signal,
    stop: () => {
      stopping.abort(new Error("the daemon is stopping"));
      agenda.stop();
    },
  };
}

/** Called when a job has ended. */
export function jobEnded({
  options,
  contact,
  agenda,
}: Pick<SourceParts, "options" | "contact" | "agenda">): void {
  // One file was sent alone, or the requests in flight have ended.
  if (contact.isProbing()) agenda.scanAt(options.context.now());
  options.onChange();
}

/**
 * Reports whether something happened at a path, or at a folder on the way to it, that is not done yet; or whether its
 * file is parked.
 */
function isAwaited(agenda: Agenda, path: RelativePath, isParked: () => boolean): boolean {
  if (agenda.hasJob(path)) return true;
  for (let at = path; at !== ""; at = at.slice(0, Math.max(0, at.lastIndexOf("/"))))
    if (agenda.isBeingChecked(at)) return true;
  // In a single pass, the time of its retry is not on the agenda.
  return (agenda.isDue(path) || agenda.isParked(path)) && isParked();
}
