import { sendDelete } from "../actions/delete.ts";
import type { ActionContext, ActionSource } from "../actions/context.ts";
import type { Deletion } from "../ledger/intents/deletes.ts";
import type { RelativePath } from "../plan/model.ts";
import { parkMs } from "../plan/retry.ts";
import { isBelow } from "../disk/source-path.ts";

/** The deletes of one source whose intents are in the ledger. Each is sent until it is done. */
export interface SourceDeletes {
  begin(deletions: readonly Deletion[]): void;
  /** Begins with those that a process, or a pause, left undone. */
  beginLeft(): void;
  /** Begins with refused ones that are due, and schedules the others. */
  beginDue(): void;
  /**
   * Called when the job of a path's file has ended, or, without a path, a pass. Begins with those whose file is no
   * longer awaited.
   */
  beginPutOff(path?: RelativePath): void;
  /** Sends one, as its job does. */
  send(deletion: Deletion): Promise<void>;
  /** Records that the job of one has ended. */
  end(deletion: Deletion): void;
  hasJobs(): boolean;
  /** Reports whether a delete of this path has a job. */
  hasJob(path: RelativePath): boolean;
  /** Returns the paths of those that have jobs. */
  jobPaths(): Iterable<RelativePath>;
  /** Since when the oldest job waits. */
  oldestMs(): number | undefined;
  /** Sends refused ones at or below a path now. */
  retry(below: RelativePath | undefined): void;
}

export interface SourceDeletesOptions {
  readonly row: { readonly id: number };
  readonly context: ActionContext;
  readonly source: ActionSource;
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
}

const IGNORED = "the service answered that it deleted the document, and still shows it";
/** How soon after a delete the service is asked for what it deleted. */
const CHECK_MS = 30_000;

/** Opens the deletes of a source; none is in flight. */
export function openSourceDeletes(options: SourceDeletesOptions): SourceDeletes {
  const { row, context, source, once, wakeAt } = options;
  const { ledger, now } = context;
  const refused = openRefusedDeletes();
  /** Since when those with jobs wait. The first is the oldest. */
  const jobs = new Map<number, number>();
  /** Paths of those with jobs, and their number: two held rows of one path may be deleted together. */
  const jobPaths = new Map<RelativePath, number>();
  /** Deletes whose file is back. They follow the create of its own resource. */
  const putOff = new Map<RelativePath, Deletion[]>();

  /**
   * Reports whether the file is back. A file that is rewritten while its delete waits gets its own resource first, so
   * that it is never without one. So does a file that took the name of the deleted one, if the service may not have
   * what its row says.
   */
  const isBack = ({ path, isSpare }: Deletion): boolean => {
    if (isSpare === true || !options.isAwaited(path)) return false;
    ledger.flush();
    const living = ledger.files.living(row.id, path);
    return typeof living?.docId !== "string" || living.state === "unsure";
  };
  const isPutOff = ({ id, path }: Pick<Deletion, "id" | "path">): boolean =>
    putOff.get(path)?.some((each) => each.id === id) === true;

  const checkLater = openDeleteCheck(options, refused);
  const begin = (deletions: readonly Deletion[]): void => {
    for (const { id, path } of deletions) {
      if (jobs.has(id)) continue;
      jobs.set(id, now());
      jobPaths.set(path, (jobPaths.get(path) ?? 0) + 1);
    }
    options.push(deletions);
  };
  const beginPutOff = (path?: RelativePath): void => {
    for (const at of path === undefined ? [...putOff.keys()] : [path]) {
      const waiting = putOff.get(at) ?? [];
      // A row with a job starts over when the job has ended.
      if (waiting.length === 0 || waiting.some((each) => jobs.has(each.id) || isBack(each))) continue;
      putOff.delete(at);
      begin(waiting);
    }
  };

  return {
    begin,
    beginLeft: () => {
      // A delete that was just done is not left over, nor is the intent that has its id by then.
      ledger.flush();
      const open = ledger.intents.deletes(row.id);
      begin(open.filter((each) => !jobs.has(each.id) && !refused.has(each.id) && !isPutOff(each)));
    },
    beginDue: () => {
      // The pass that ends the hold begins with them.
      if (options.isHeld()) return;
      begin(refused.due(now()).filter(({ id }) => !jobs.has(id)));
      for (const { id, atMs } of refused.times()) if (!jobs.has(id)) wakeAt(atMs);
    },
    send: async (deletion) => {
      // Its intent is in the ledger: the check at the resume sends it.
      if (options.isHeld()) return;
      const end = await sendDelete(context, source, deletion, () => isBack(deletion));
      if (end === "refused" && once) return;
      if (end === "refused") return wakeAt(refused.add(deletion, now()));
      refused.remove(deletion.id);
      if (end === "done" && !once) checkLater(deletion);
      // After a pause, `beginLeft` starts what was left. Otherwise the file was back. If it has received its own
      // resource meanwhile, the delete starts again as soon as this job has ended.
      if (end === "left" && !options.isHeld())
        putOff.set(deletion.path, [...(putOff.get(deletion.path) ?? []), deletion]);
    },
    beginPutOff,
    end: ({ id, path }) => {
      if (jobs.delete(id)) {
        const left = (jobPaths.get(path) ?? 1) - 1;
        if (left === 0) jobPaths.delete(path);
        else jobPaths.set(path, left);
      }
      beginPutOff(path);
    },
    hasJobs: () => jobs.size > 0,
    hasJob: (path) => jobPaths.has(path),
    jobPaths: () => jobPaths.keys(),
    oldestMs: () => jobs.values().next().value,
    retry: (below) => {
      refused.makeDue(below, now());
      wakeAt(now());
    },
  };
}

/**
 * Opens the check of deletes that were done: a service may answer that it deleted a resource, and keep it. The latest delete is
 * checked for all of them.
 */
function openDeleteCheck(
  { row, context, wakeAt }: SourceDeletesOptions,
  refused: RefusedDeletes,
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
    wakeAt(refused.add({ id, path, docId }, now()));
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

/** Deletes that the service refused, each with the time of its next attempt. */
interface RefusedDeletes {
  /** Records another refusal. Returns the time of the next attempt. */
  add(deletion: Deletion, nowMs: number): number;
  /** Removes a delete that is done. */
  remove(id: number): void;
  has(id: number): boolean;
  /** Returns the deletes that are due. */
  due(nowMs: number): Deletion[];
  /** Returns the times of the next attempts. */
  times(): Iterable<{ readonly id: number; readonly atMs: number }>;
  /** Makes the deletes at or below a path due. */
  makeDue(below: RelativePath | undefined, nowMs: number): void;
}

/** Opens an empty list. */
export function openRefusedDeletes(): RefusedDeletes {
  const refused = new Map<number, { readonly deletion: Deletion; atMs: number; readonly tries: number }>();
  return {
    add: (deletion, nowMs) => {
      const tries = 1 + (refused.get(deletion.id)?.tries ?? 0);
      const atMs = nowMs + parkMs(tries);
      refused.set(deletion.id, { deletion, atMs, tries });
      return atMs;
    },
    remove: (id) => {
      refused.delete(id);
    },
    has: (id) => refused.has(id),
    due: (nowMs) => [...refused.values()].filter(({ atMs }) => atMs <= nowMs).map(({ deletion }) => deletion),
    times: () => [...refused].map(([id, { atMs }]) => ({ id, atMs })),
    makeDue: (below, nowMs) => {
      for (const each of refused.values()) if (isBelow(each.deletion.path, below)) each.atMs = nowMs;
    },
  };
}
