import {
  IN_ORDER,
  LEASE_MS,
  type AfterQuery,
  type DueQuery,
  type FirstQuery,
  type QueuedJob,
  type QueueFigures,
  type QueueName,
  type WaitingJob,
} from "../../../queue/queue.ts";
import type { Inside } from "../../methods.ts";
import type { Connection } from "../database/connection.ts";

/** Reads of the queue. */
export type QueueReads = Inside<"read" | "lookup">["queue"] & {
  /** Returns the due jobs of the next lines after `afterLine`; `lastLine` is undefined at the end. */
  duePart(
    this: void,
    query: DueQuery & { readonly afterLine: string },
  ): { readonly jobs: readonly WaitingJob[]; readonly lastLine: string | undefined };
};

/** Lines read in one go, in about 3 ms. */
const LINES_MAX = 500;

/**
 * True of a job without a valid lease. A lease that ends later than any lease can was given before the clock was set back.
 * The parameter `@nowMs` is the time.
 */
export const IS_FREE = `(worker IS NULL OR leased_until_ms NOT BETWEEN @nowMs + 1 AND @nowMs + ${2 * LEASE_MS})`;

/** Prepares the statements on a connection of either kind. */
export function prepareQueueReads(db: Connection): QueueReads {
  // A job whose lease ended while a worker ran it has crashed the worker; `lease` counts that in the row.
  const columns =
    "number, account_id AS accountId, line, crashes + (worker IS NOT NULL AND is_working) AS crashes";
  const selectLine = db
    .prepare<[QueueName, string], string>(
      "SELECT line FROM job WHERE queue = ? AND is_dead = 0 AND line > ? ORDER BY line LIMIT 1",
    )
    .pluck();
  const selectDue = db.prepare<object, WaitingJob>(`
    SELECT ${columns} FROM job
    WHERE queue = @queue AND is_dead = 0 AND line = @line AND due_ms BETWEEN @fromMs AND @toMs AND ${IS_FREE}
    ORDER BY due_ms, number LIMIT @limit`);
  const selectFirst = db.prepare<object, WaitingJob & { readonly mayStart: number }>(`
    SELECT ${columns}, due_ms <= @nowMs AND ${IS_FREE} AS mayStart FROM job
    WHERE queue = @queue AND is_dead = 0 AND line = @line ORDER BY number LIMIT 1`);
  const queued = `
    SELECT number, account_id AS accountId, owner_id AS ownerId, line, octet_length(body) AS bodyBytes,
      crashes + (worker IS NOT NULL AND is_working AND ${IS_FREE}) AS crashes,
      CASE WHEN ${IS_FREE} THEN due_ms ELSE max(due_ms, leased_until_ms) END AS dueMs
    FROM job WHERE queue = @queue AND is_dead = 0`;
  const selectAfter = db.prepare<AfterQuery, QueuedJob>(
    `${queued} AND number > @number ORDER BY number LIMIT @limit`,
  );
  const selectHead = db.prepare<FirstQuery, QueuedJob>(`${queued} AND line = @line ORDER BY number LIMIT 1`);
  const selectNext = db
    .prepare<[QueueName, number], number | null>(
      "SELECT min(due_ms) FROM job WHERE queue = ? AND is_dead = 0 AND due_ms > ?",
    )
    .pluck();
  const selectFigures = db.prepare<object, QueueFigures>(`
    SELECT count(*) FILTER (WHERE is_dead = 0) AS waiting, count(*) FILTER (WHERE is_dead = 1) AS dead,
      min(created_ms) FILTER (WHERE is_dead = 0) AS oldestMs
    FROM job WHERE queue = @queue AND (@accountId IS NULL OR account_id = @accountId)`);

  const dueOf = (line: string, { queue, nowMs, perLine }: DueQuery): WaitingJob[] => {
    if (IN_ORDER[queue]) {
      const first = selectFirst.get({ queue, line, nowMs });
      if (first === undefined) return [];
      const { mayStart, ...job } = first;
      return mayStart === 1 ? [job] : [];
    }
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
    after: (query) => selectAfter.all(query),
    first: (query) => selectHead.get(query),
    nextDueMs: (queue, nowMs) => selectNext.get(queue, nowMs) ?? undefined,
    figures: (queue, accountId) =>
      selectFigures.get({ queue, accountId: accountId ?? null }) ?? { waiting: 0, dead: 0, oldestMs: null },
  };
}
