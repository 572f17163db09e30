import { IN_ORDER, type DueQuery, type WaitingJob } from "../../../queue/queue.ts";
import type { Inside } from "../../methods.ts";
import { dueChanges, queueSteps, WAITING, type QueueSteps } from "../../sql/queue.ts";
import type { Steps } from "../../sql/steps.ts";
import type { Connection } from "../database/connection.ts";
import { prepareSteps } from "../database/steps.ts";

/** Reads of the queue. */
export type QueueReads = Inside<"read" | "lookup">["queue"] & {
  /** Returns the due jobs of the next lines after `afterLine`; `lastLine` is undefined at the end. */
  duePart(
    this: void,
    query: DueQuery & { readonly afterLine: string },
  ): { readonly jobs: readonly WaitingJob[]; readonly lastLine: string | undefined };
};

/** Writes of the queue. Each runs inside a transaction of the caller. */
export type QueueWrites = Inside<"write" | "free">["queue"] & {
  [M in "putChange" | "documentOf" | "removeChange" | "hasChange"]: QueueSteps[M] extends (
    ...given: infer A
  ) => Steps<infer T>
    ? (...given: A) => T
    : never;
};

/** There is one writer, so a transaction has the file for itself. */
const STEPS = queueSteps({ lock: "", skipLocked: "", lockLine: undefined });

/** Lines read in one go, in about 3 ms. */
const LINES_MAX = 500;

/** Prepares the reads on a connection of either kind. */
export function prepareQueueReads(db: Connection): QueueReads {
  const run = prepareSteps(db);
  const selectLine = db
    .prepare<[string, string], string>(
      "SELECT line FROM job WHERE queue = ? AND is_failed = 0 AND line > ? ORDER BY line LIMIT 1",
    )
    .pluck();
  const selectDue = db.prepare<object, WaitingJob>(`
    SELECT ${WAITING} FROM job
    WHERE queue = @queue AND is_failed = 0 AND line = @line AND due_ms BETWEEN @fromMs AND @toMs
    ORDER BY due_ms, number LIMIT @limit`);
  const selectChanges = db.prepare<object, WaitingJob>(dueChanges("@line"));
  const selectFirst = db.prepare<object, WaitingJob & { readonly isDue: number }>(`
    SELECT ${WAITING}, due_ms <= @nowMs AS isDue FROM job
    WHERE queue = @queue AND is_failed = 0 AND line = @line ORDER BY number LIMIT 1`);

  const dueOf = (line: string, { queue, nowMs, perLine }: DueQuery): WaitingJob[] => {
    if (IN_ORDER[queue]) {
      const first = selectFirst.get({ queue, line, nowMs });
      if (first === undefined) return [];
      const { isDue, ...job } = first;
      return isDue === 1 ? [job] : [];
    }
    if (queue === "ingest") return selectChanges.all({ line, nowMs, perLine });
    const due = selectDue.all({ queue, line, nowMs, fromMs: 1, toMs: nowMs, limit: perLine });
    const limit = perLine - due.length;
    return due.concat(selectDue.all({ queue, line, nowMs, fromMs: 0, toMs: 0, limit }));
  };
  return {
    duePart: ({ afterLine, ...query }) => {
      const jobs: WaitingJob[] = [];
      let line: string | undefined = afterLine;
      for (let read = 0; read < LINES_MAX; read += 1) {
        line = selectLine.get(query.queue, line);
        if (line === undefined) break;
        jobs.push(...dueOf(line, query));
      }
      return { jobs, lastLine: line };
    },
    change: (query) => run(STEPS.change(query)),
    pagesOf: (lease) => run(STEPS.pagesOf(lease)),
    nextDueMs: (queue, nowMs) => run(STEPS.nextDueMs(queue, nowMs)),
    figures: (queue, accountId, nowMs) => run(STEPS.figures(queue, accountId, nowMs)),
  };
}

/** Prepares the writes on the writing connection. */
export function prepareQueueWrites(db: Connection): QueueWrites {
  const run = prepareSteps(db);
  return {
    put: (job) => run(STEPS.put(job)),
    putChange: (job, settings) => run(STEPS.putChange(job, settings)),
    documentOf: (lease) => run(STEPS.documentOf(lease)),
    removeChange: (accountId, id) => run(STEPS.removeChange(accountId, id)),
    hasChange: (accountId, id) => run(STEPS.hasChange(accountId, id)),
    lease: (request) => run(STEPS.lease(request)),
    renew: (renewal) => run(STEPS.renew(renewal)),
    keepPages: (lease, pages) => run(STEPS.keepPages(lease, pages)),
    noteReading: (lease, warning) => run(STEPS.noteReading(lease, warning)),
    complete: (lease) => run(STEPS.complete(lease)),
    postpone: (lease, wait) => run(STEPS.postpone(lease, wait)),
    fail: (lease) => run(STEPS.fail(lease)),
    purgeFailed: (queue, beforeMs, limit) => run(STEPS.purgeFailed(queue, beforeMs, limit)),
    release: (worker) => run(STEPS.release(worker)),
    resume: (worker, nowMs, isAlone) => run(STEPS.resume(worker, nowMs, isAlone)),
  };
}
