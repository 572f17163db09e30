import { IN_ORDER, type Queue, type QueueName, type WaitingJob } from "../../../queue/queue.ts";
import { dueChanges, queueSteps, WAITING } from "../../sql/queue.ts";
import type { Transaction } from "../database/connections.ts";
import { runSteps } from "../database/steps.ts";

/** Family of the advisory locks of lines. Their second key is a hash, so that unrelated lines may wait for each other. */
const LINE = 2;

/** Numbers of a line ascend in the order of commits: its next job gets one when the transaction of the last one has ended. */
export const QUEUE = queueSteps({
  lock: "FOR UPDATE",
  skipLocked: "FOR UPDATE SKIP LOCKED",
  lockLine: `SELECT pg_advisory_xact_lock(${LINE}, hashtext(@queue || ' ' || @line))`,
});

/** The queue inside a transaction. */
export function queueOn(tx: Transaction): Queue {
  return {
    due: ({ queue, nowMs, perLine }) =>
      tx.all<WaitingJob>(`${LINES} ${dueOf(queue)}`, { queue, nowMs, perLine }),
    put: (job) => runSteps(tx, QUEUE.put(job)),
    change: (query) => runSteps(tx, QUEUE.change(query)),
    lease: (request) => runSteps(tx, QUEUE.lease(request)),
    renew: (renewal) => runSteps(tx, QUEUE.renew(renewal)),
    keepPages: (lease, pages) => runSteps(tx, QUEUE.keepPages(lease, pages)),
    noteReading: (lease, warning) => runSteps(tx, QUEUE.noteReading(lease, warning)),
    pagesOf: (lease) => runSteps(tx, QUEUE.pagesOf(lease)),
    complete: (lease) => runSteps(tx, QUEUE.complete(lease)),
    postpone: (lease, wait) => runSteps(tx, QUEUE.postpone(lease, wait)),
    fail: (lease) => runSteps(tx, QUEUE.fail(lease)),
    purgeFailed: (queue, beforeMs, limit) => runSteps(tx, QUEUE.purgeFailed(queue, beforeMs, limit)),
    release: (worker) => runSteps(tx, QUEUE.release(worker)),
    resume: (worker, nowMs, isAlone) => runSteps(tx, QUEUE.resume(worker, nowMs, isAlone)),
    nextDueMs: (queue, nowMs) => runSteps(tx, QUEUE.nextDueMs(queue, nowMs)),
    figures: (queue, accountId, nowMs) => runSteps(tx, QUEUE.figures(queue, accountId, nowMs)),
  };
}

function dueOf(queue: QueueName): string {
  if (queue === "ingest") return CHANGES;
  return IN_ORDER[queue] ? FIRST_IF_DUE : DUE;
}

/** The lines of a queue, each found by one read of the index, however many jobs it has. */
const LINES = `WITH RECURSIVE lines AS (
  (SELECT line FROM job WHERE queue = @queue AND NOT is_failed ORDER BY line LIMIT 1)
  UNION ALL
  SELECT (SELECT line FROM job WHERE queue = @queue AND NOT is_failed AND line > lines.line ORDER BY line LIMIT 1)
  FROM lines WHERE line IS NOT NULL)`;

const FOUND = `found.number, found."accountId", found."ownerId", found.line, found.name, found."bodyBytes",
  found."changedMs", found.crashes`;

/** The first job of each line, if it is due. */
const FIRST_IF_DUE = `
  SELECT ${FOUND} FROM lines CROSS JOIN LATERAL (
    SELECT ${WAITING}, due_ms FROM job
    WHERE queue = @queue AND NOT is_failed AND line = lines.line ORDER BY job.number LIMIT 1
  ) AS found
  WHERE due_ms <= @nowMs::bigint AND @perLine::int > 0 ORDER BY found.line`;

/** Due changes of each line. */
const CHANGES = `
  SELECT ${FOUND} FROM lines CROSS JOIN LATERAL (${dueChanges("lines.line")}) AS found`;

/** Due jobs of each line: postponed ones, then new ones. */
const DUE = `
  SELECT ${FOUND} FROM lines CROSS JOIN LATERAL (
    SELECT * FROM (
      (SELECT ${WAITING}, due_ms FROM job
        WHERE queue = @queue AND NOT is_failed AND line = lines.line AND due_ms BETWEEN 1 AND @nowMs::bigint
        ORDER BY due_ms, job.number LIMIT @perLine)
      UNION ALL
      (SELECT ${WAITING}, due_ms FROM job
        WHERE queue = @queue AND NOT is_failed AND line = lines.line AND due_ms = 0
        ORDER BY job.number LIMIT @perLine)
    ) AS either ORDER BY due_ms = 0, due_ms, number LIMIT @perLine
  ) AS found
  ORDER BY found.line, due_ms = 0, due_ms, number`;
