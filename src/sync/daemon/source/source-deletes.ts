import { sendDelete } from "../../send/delete.ts";
import type { ActionContext, ActionSource } from "../../send/context.ts";
import type { Deletion } from "../../ledger/intents/deletes.ts";
import type { RelativePath } from "../../plan/model.ts";
import { parkMs } from "../../plan/retry.ts";
import { isBelow } from "../../scan/disk/source-path.ts";

/** The deletes of one source whose intents are in the ledger. Each is sent until it is done. */
export type SourceDeletes = ReturnType<typeof openSourceDeletes>;

export interface SourceDeletesOptions {
  readonly row: { readonly id: number };
  readonly context: ActionContext;
  readonly source: Pick<ActionSource, "id" | "root">;
  /** One pass: leaves what the service refuses to the next. */
  readonly once: boolean;
  /** Reports whether nothing may be sent. */
  readonly isHeld: () => boolean;
  /** Reports whether the file at a path has yet to be read or sent, and so may get a resource. */
  readonly isAwaited: (path: RelativePath) => boolean;
  /** Puts deletes into the queue, after everything else. */
  readonly push: (deletions: readonly Deletion[]) => void;
  /** Schedules a call of `beginDue`. */
  readonly wakeAt: (atMs: number) => void;
  /** Called when the job of one has ended. */
  readonly onEnd: () => void;
}

/** A delete that has a job or waits for one. */
interface OpenDelete {
  readonly deletion: Deletion;
  hasJob: boolean;
  /** Since when it has a job. */
  sinceMs: number;
  /**
   * What follows its job. `end`: nothing. `file`: the file is back, and the delete follows the create of its own resource.
   * `retry`: another attempt, because the service refused it.
   */
  next: "end" | "file" | "retry";
  /** Time of the next attempt. */
  atMs: number;
  /** Number of refusals. */
  tries: number;
}

/** Opens the deletes of a source; none is in flight. */
export function openSourceDeletes(options: SourceDeletesOptions) {
  const { row, context, source, once, wakeAt } = options;
  const { ledger, now } = context;
  const open = openTable();

  const begin = (deletions: readonly Deletion[]): void => {
    for (const deletion of deletions) open.startJob(deletion, now());
    options.push(deletions);
  };
  /**
   * Called when the job of a path's file has ended, or, without a path, a pass. Begins with those whose file is no longer
   * awaited.
   */
  const beginPutOff = (path?: RelativePath): void => {
    for (const at of path === undefined ? [...open.paths()] : [path]) {
      const waiting = open.at(at).filter(({ next }) => next === "file");
      // A row with a job starts over when the job has ended.
      if (waiting.some(({ hasJob, deletion }) => hasJob || isFileBack(options, deletion))) continue;
      for (const entry of waiting) entry.next = "end";
      if (waiting.length > 0) begin(waiting.map(({ deletion }) => deletion));
    }
  };
  const refuse = (deletion: Deletion): void => {
    const entry = open.entryOf(deletion);
    entry.tries += 1;
    entry.atMs = now() + parkMs(entry.tries);
    entry.next = "retry";
    wakeAt(entry.atMs);
  };
  const checkLater = openDeleteCheck(options, refuse);

  return {
    /** The source's number in the ledger. */
    source: row.id,
    begin,
    beginPutOff,
    /** Begins with those that a process, or a pause, left undone. */
    beginLeft: (): void => {
      // A delete that was just done is not left over, nor is the intent that has its id by then.
      ledger.flush();
      const left = ledger.intents.deletes(row.id);
      begin(left.filter(({ id, path }) => !open.at(path).some(({ deletion }) => deletion.id === id)));
    },
    /** Begins with refused ones that are due, and schedules the others. */
    beginDue: (): void => {
      // The pass that ends the hold begins with them.
      if (options.isHeld()) return;
      const waiting = open.all().filter(({ next, hasJob }) => next === "retry" && !hasJob);
      const { due = [], later = [] } = Object.groupBy(waiting, ({ atMs }) =>
        atMs <= now() ? "due" : "later",
      );
      begin(due.map(({ deletion }) => deletion));
      for (const { atMs } of later) wakeAt(atMs);
    },
    /** Sends one, as its job does. */
    send: async (deletion: Deletion): Promise<void> => {
      // Its intent is in the ledger: the check at the resume sends it.
      if (options.isHeld()) return;
      const end = await sendDelete(context, source, deletion, () => isFileBack(options, deletion));
      const entry = open.entryOf(deletion);
      entry.next = "end";
      if (end === "refused" && !once) refuse(deletion);
      if (end === "done" && !once) checkLater(deletion);
      // After a pause, `beginLeft` starts what was left. Otherwise the file was back. If it has received its own
      // resource meanwhile, the delete starts again as soon as this job has ended.
      if (end === "left" && !options.isHeld()) entry.next = "file";
    },
    /** Records that the job of one has ended. */
    end: (deletion: Deletion): void => {
      open.endJob(deletion);
      beginPutOff(deletion.path);
      options.onEnd();
    },
    hasJobs: open.hasJobs,
    hasJob: open.hasJob,
    jobPaths: open.jobPaths,
    oldestMs: open.oldestMs,
    /** Sends refused ones at or below a path now. */
    retry: (below: RelativePath | undefined): void => {
      for (const entry of open.all()) if (isBelow(entry.deletion.path, below)) entry.atMs = now();
      wakeAt(now());
    },
  };
}

/** Opens a table without deletes, by path and id: two held rows of one path may be deleted together. */
function openTable() {
  const open = new Map<RelativePath, Map<number, OpenDelete>>();
  let jobs = 0;
  const at = (path: RelativePath): readonly OpenDelete[] => [...(open.get(path)?.values() ?? [])];
  const all = (): readonly OpenDelete[] => [...open.keys()].flatMap(at);
  /** Returns the entry of a delete, which it adds if there is none. */
  const entryOf = (deletion: Deletion): OpenDelete => {
    const ofPath = open.get(deletion.path) ?? new Map<number, OpenDelete>();
    const rest = { hasJob: false, sinceMs: 0, next: "end", atMs: 0, tries: 0 } as const;
    const entry = ofPath.get(deletion.id) ?? { deletion, ...rest };
    open.set(deletion.path, ofPath.set(deletion.id, entry));
    return entry;
  };
  return {
    at,
    all,
    paths: (): Iterable<RelativePath> => open.keys(),
    entryOf,
    startJob: (deletion: Deletion, nowMs: number): void => {
      const entry = entryOf(deletion);
      if (entry.hasJob) return;
      Object.assign(entry, { hasJob: true, sinceMs: nowMs });
      jobs += 1;
    },
    /** Records that a job has ended, and removes a delete that nothing follows. */
    endJob: ({ id, path }: Deletion): void => {
      const ofPath = open.get(path);
      const entry = ofPath?.get(id);
      if (entry?.hasJob === true) jobs -= 1;
      if (entry !== undefined) entry.hasJob = false;
      if (entry?.next === "end") ofPath?.delete(id);
      if (ofPath?.size === 0) open.delete(path);
    },
    hasJobs: (): boolean => jobs > 0,
    /** Reports whether a delete of this path has a job. */
    hasJob: (path: RelativePath): boolean => at(path).some(({ hasJob }) => hasJob),
    /** Returns the paths of those that have jobs. */
    jobPaths: (): readonly RelativePath[] =>
      [...open.keys()].filter((path) => at(path).some(({ hasJob }) => hasJob)),
    /** Since when the oldest job waits. */
    oldestMs: (): number | undefined =>
      all().reduce<number | undefined>(
        (oldest, { hasJob, sinceMs }) => (hasJob ? Math.min(oldest ?? sinceMs, sinceMs) : oldest),
        undefined,
      ),
  };
}

/**
 * Reports whether the file of a delete is back. A file that is rewritten while its delete waits gets its own resource
 * first, so that it is never without one. So does a file that took the name of the deleted one, if the service may not have
 * what its row says.
 */
function isFileBack(
  { row, context: { ledger }, isAwaited }: SourceDeletesOptions,
  { path, isSpare }: Deletion,
): boolean {
  if (isSpare === true || !isAwaited(path)) return false;
  ledger.flush();
  const living = ledger.files.living(row.id, path);
  return typeof living?.docId !== "string" || living.state === "unsure";
}

const IGNORED = "the service answered that it deleted the document, and still shows it";
/** How soon after a delete the service is asked for what it deleted. */
const CHECK_MS = 30_000;

/**
 * Opens the check of deletes that were done: a service may answer that it deleted a resource, and keep it. The latest delete is
 * checked for all of them. `refuse` sends one again later.
 */
function openDeleteCheck(
  { row, context }: SourceDeletesOptions,
  refuse: (deletion: Deletion) => void,
): (deletion: Deletion) => void {
  const { ledger, now } = context;
  let latest: Deletion | undefined;
  const check = async (): Promise<void> => {
    const checked = latest;
    latest = undefined;
    const shown = checked && (await context.remote.read(checked.docId, context.signal));
    if (checked === undefined || shown?.kind !== "done" || shown.value.isDeleted) return;
    const { path, docId } = checked;
    let id = 0;
    await ledger.write(() => {
      id = ledger.intents.delete(row.id, path, docId);
      ledger.intents.refuse(id, IGNORED);
    });
    const facts = { source: row.id, path, from: undefined, docId, action: "delete" as const };
    context.report({ ...facts, atMs: now(), outcome: "refused", durationMs: 0, message: IGNORED });
    refuse({ id, path, docId });
  };
  return (deletion) => {
    if (latest === undefined) {
      const timer = setTimeout(() => {
        // A failure shows in the deletes themselves.
        void check().catch(() => undefined);
      }, CHECK_MS);
      timer.unref();
    }
    latest = deletion;
  };
}
