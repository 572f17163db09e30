import assert from "node:assert/strict";
import { KbsyncError } from "../../../../lib/failure.ts";
import { fitsShare } from "../../../../lib/shares.ts";
import {
  IN_ORDER,
  LEASE_MS,
  type LeasedJob,
  type LeaseRequest,
  type NewJob,
  type Queue,
  type QueuedJob,
  type QueueFigures,
  type QueueName,
  type Renewal,
  type Wait,
  type WaitingJob,
} from "../../../queue/queue.ts";
import type { Transaction } from "../database/connections.ts";
import type { Parameters } from "../database/statement.ts";

/** Maximum difference between two machines' clocks: a wait that starts further in the future was written by another clock. */
const CLOCKS_APART_MS = 60_000;

/**
 * True of a job without a valid lease. A lease that ends later than any lease can was given before the clock was set back.
 * The parameter `@nowMs` is the time.
 */
const IS_FREE = `(worker IS NULL
  OR leased_until_ms NOT BETWEEN @nowMs::bigint + 1 AND @nowMs::bigint + ${2 * LEASE_MS})`;

/** Columns of a `WaitingJob`. A job whose lease ended while a worker ran it crashed the worker; `lease` counts that in the row. */
const WAITING = `number, account_id AS "accountId", line, crashes + (worker IS NOT NULL AND is_working)::int AS crashes`;

/** Columns of a `QueuedJob`. */
const QUEUED = `number, account_id AS "accountId", owner_id AS "ownerId", line, octet_length(body) AS "bodyBytes",
  crashes + (worker IS NOT NULL AND is_working AND ${IS_FREE})::int AS crashes,
  CASE WHEN ${IS_FREE} THEN due_ms ELSE greatest(due_ms, leased_until_ms) END AS "dueMs"`;

/** The lines of a queue, each found by one read of the index, however many jobs it has. */
const LINES = `WITH RECURSIVE lines AS (
  (SELECT line FROM job WHERE queue = @queue AND NOT is_dead ORDER BY line LIMIT 1)
  UNION ALL
  SELECT (SELECT line FROM job WHERE queue = @queue AND NOT is_dead AND line > lines.line ORDER BY line LIMIT 1)
  FROM lines WHERE line IS NOT NULL)`;

const OF_LEASE = "number = @number AND token = @token AND worker IS NOT NULL";

/** The queue inside a transaction. */
export function queueOn(tx: Transaction): Queue {
  return { ...readsOn(tx), ...leasesOn(tx), ...endsOn(tx), put: (job) => put(tx, job) };
}

/**
 * Puts a job. Should be the last statement of its transaction but for updates of rows that it has locked: readers of the queue wait for it.
 */
async function put(tx: Transaction, job: NewJob): Promise<void> {
  if (IN_ORDER[job.queue]) await lockLine(tx, job.queue, job.line);
  await lockPuts(tx, job.queue);
  const [refused] = await refusals(tx, [job]);
  if (refused !== undefined) throw refused;
  await insertJobs(tx, [job]);
}

/**
 * Puts jobs that are the first of their lines, and that `refusals` has admitted: nobody else can put one there before this transaction
 * has ended. Comes last in its transaction, as `put`.
 */
export async function putFirst(tx: Transaction, queue: QueueName, jobs: readonly NewJob[]): Promise<void> {
  await Promise.all([lockPuts(tx, queue), insertJobs(tx, jobs)]);
}

/** Returns for each of these jobs, which are of one queue and one account, why it may not be put. */
export async function refusals(
  tx: Transaction,
  jobs: readonly NewJob[],
): Promise<(KbsyncError | undefined)[]> {
  const [{ queue, accountId } = { queue: "", accountId: "" }] = jobs;
  const waiting = await tx.get<{ jobs: number; ownJobs: number; chars: number; ownChars: number }>(
    `SELECT count(*) AS jobs, count(*) FILTER (WHERE account_id = @accountId) AS "ownJobs",
      coalesce(sum(chars), 0) AS chars, coalesce(sum(chars) FILTER (WHERE account_id = @accountId), 0) AS "ownChars"
    FROM (SELECT account_id, chars FROM job WHERE queue = @queue AND NOT is_dead LIMIT @enough) AS waiting`,
    // More than the bound refuse every job, so the rest need not be counted.
    { queue, accountId, enough: 1 + Math.max(0, ...jobs.map(({ jobsMax }) => jobsMax)) },
  );
  assert(waiting !== undefined);
  let [added, addedChars] = [0, 0];
  return jobs.map(({ jobsMax, charsMax = Infinity, body: { length: chars } }) => {
    if (
      !fitsShare(jobsMax, waiting.jobs + added, waiting.ownJobs + added, 1) ||
      !fitsShare(charsMax, waiting.chars + addedChars, waiting.ownChars + addedChars, chars)
    )
      return new KbsyncError("too much work is waiting", { code: "queue_full", retryable: true });
    added += 1;
    addedChars += chars;
    return undefined;
  });
}

async function insertJobs(tx: Transaction, jobs: readonly NewJob[]): Promise<void> {
  // 0 is due at any clock time: the clock may be set back before the job is leased.
  await tx.run(
    `INSERT INTO job (queue, account_id, owner_id, line, name, due_ms, created_ms, file_token, chars, body)
    SELECT queue, account_id, owner_id, line, name, 0, created_ms, file_token, chars, body
    FROM unnest(@queues::text[], @accountIds::text[], @ownerIds::text[], @lines::text[], @names::text[], @times::bigint[],
        @fileTokens::text[], @chars::bigint[], @bodies::text[]) WITH ORDINALITY
      AS new (queue, account_id, owner_id, line, name, created_ms, file_token, chars, body, nth)
    ORDER BY nth`,
    {
      queues: jobs.map(({ queue }) => queue),
      accountIds: jobs.map(({ accountId }) => accountId),
      ownerIds: jobs.map(({ ownerId }) => ownerId ?? ""),
      lines: jobs.map(({ line }) => line),
      names: jobs.map(({ name }) => name),
      times: jobs.map(({ nowMs }) => nowMs),
      fileTokens: jobs.map(({ fileToken }) => fileToken ?? null),
      chars: jobs.map(({ body }) => body.length),
      bodies: jobs.map(({ body }) => body),
    },
  );
}

/** Families of advisory locks. Their second key is a hash, so that unrelated work may wait for each other, but never wrongly not. */
const PUTS = 1;
const LINE = 2;

/** Makes readers that ask for the jobs after a number wait until this transaction has ended. */
export async function lockPuts(tx: Transaction, queue: QueueName): Promise<void> {
  await tx.run("SELECT pg_advisory_xact_lock_shared(@family::int, hashtext(@queue))", {
    family: PUTS,
    queue,
  });
}

/** Numbers of a line ascend in the order of commits: its next job gets one when the transaction of the last one has ended. */
async function lockLine(tx: Transaction, queue: QueueName, line: string): Promise<void> {
  await tx.run("SELECT pg_advisory_xact_lock(@family::int, hashtext(@queue || ' ' || @line))", {
    family: LINE,
    queue,
    line,
  });
}

function readsOn(tx: Transaction): Pick<Queue, "due" | "after" | "first" | "nextDueMs" | "figures"> {
  return {
    due: ({ queue, nowMs, perLine }) =>
      tx.all<WaitingJob>(`${LINES} ${IN_ORDER[queue] ? FIRST_IF_DUE : DUE}`, { queue, nowMs, perLine }),
    after: async (query) => {
      // No put is in flight while this is held, so no job with a lower number appears later. The snapshot is taken afterwards:
      // this method runs as `latest`.
      await tx.run("SELECT pg_advisory_xact_lock(@family::int, hashtext(@queue))", {
        family: PUTS,
        queue: query.queue,
      });
      return tx.all<QueuedJob>(
        `SELECT ${QUEUED} FROM job WHERE queue = @queue AND NOT is_dead AND number > @number ORDER BY number LIMIT @limit`,
        { ...query },
      );
    },
    first: (query) =>
      tx.get<QueuedJob>(
        `SELECT ${QUEUED} FROM job WHERE queue = @queue AND NOT is_dead AND line = @line ORDER BY number LIMIT 1`,
        { ...query },
      ),
    nextDueMs: async (queue, nowMs) => {
      const next = await tx.get<{ dueMs: number | null }>(
        `SELECT min(due_ms) AS "dueMs" FROM job WHERE queue = @queue AND NOT is_dead AND due_ms > @nowMs`,
        { queue, nowMs },
      );
      return next?.dueMs ?? undefined;
    },
    figures: async (queue, accountId) => {
      const figures = await tx.get<QueueFigures>(
        `SELECT count(*) FILTER (WHERE NOT is_dead) AS waiting, count(*) FILTER (WHERE is_dead) AS dead,
          min(created_ms) FILTER (WHERE NOT is_dead) AS "oldestMs"
        FROM job WHERE queue = @queue AND (@accountId::text IS NULL OR account_id = @accountId)`,
        { queue, accountId },
      );
      return figures ?? { waiting: 0, dead: 0, oldestMs: null };
    },
  };
}

/** The first job of each line, if it may start. */
const FIRST_IF_DUE = `
  SELECT found.number, found."accountId", found.line, found.crashes FROM lines CROSS JOIN LATERAL (
    SELECT ${WAITING}, due_ms <= @nowMs::bigint AND ${IS_FREE} AS may_start FROM job
    WHERE queue = @queue AND NOT is_dead AND line = lines.line ORDER BY job.number LIMIT 1
  ) AS found
  WHERE may_start AND @perLine::int > 0 ORDER BY found.line`;

/** Jobs of each line that may start: postponed ones, then new ones. */
const DUE = `
  SELECT found.number, found."accountId", found.line, found.crashes FROM lines CROSS JOIN LATERAL (
    SELECT * FROM (
      (SELECT ${WAITING}, due_ms FROM job
        WHERE queue = @queue AND NOT is_dead AND line = lines.line AND due_ms BETWEEN 1 AND @nowMs::bigint AND ${IS_FREE}
        ORDER BY due_ms, job.number LIMIT @perLine)
      UNION ALL
      (SELECT ${WAITING}, due_ms FROM job
        WHERE queue = @queue AND NOT is_dead AND line = lines.line AND due_ms = 0 AND ${IS_FREE}
        ORDER BY job.number LIMIT @perLine)
    ) AS either ORDER BY due_ms = 0, due_ms, number LIMIT @perLine
  ) AS found
  ORDER BY found.line, due_ms = 0, due_ms, number`;

function leasesOn(tx: Transaction): Pick<Queue, "lease" | "renew" | "release" | "resume"> {
  return {
    lease: ({ isEarly = false, waits = false, ...request }: LeaseRequest) =>
      // A job that another worker's transaction is leasing or ending is not waited for: afterwards it is gone or leased.
      tx.get<LeasedJob>(
        `WITH free AS (
          SELECT number FROM job
          WHERE number = @number AND NOT is_dead
            AND (worker = @worker OR (due_ms <= @nowMs::bigint OR @isEarly::boolean) AND ${IS_FREE})
            AND NOT (queue = ANY (@inOrder::text[]) AND EXISTS (
              SELECT 1 FROM job AS earlier WHERE earlier.queue = job.queue AND NOT earlier.is_dead
                AND earlier.line = job.line AND earlier.number < job.number))
          FOR UPDATE ${waits ? "" : "SKIP LOCKED"})
        UPDATE job SET crashes = crashes + (worker IS NOT NULL AND worker <> @worker AND is_working)::int,
          worker = @worker, token = token + 1, leased_until_ms = @nowMs::bigint + ${LEASE_MS}, is_working = true
        FROM free WHERE job.number = free.number
        RETURNING job.number, account_id AS "accountId", line, crashes, token, name, body, created_ms AS "createdMs", attempts`,
        { ...request, isEarly, inOrder: QUEUES_IN_ORDER },
      ),
    renew: async ({ leases, worker, nowMs, isWorking, waits = false }: Renewal) => {
      const renewed = await tx.all<{ number: number }>(
        `WITH own AS (
          SELECT job.number FROM job
          JOIN unnest(@numbers::bigint[], @tokens::bigint[]) AS lease (number, token) USING (number, token)
          WHERE worker = @worker FOR UPDATE OF job ${waits ? "" : "SKIP LOCKED"})
        UPDATE job SET leased_until_ms = @nowMs::bigint + ${LEASE_MS}, is_working = @isWorking
        FROM own WHERE job.number = own.number RETURNING job.number`,
        {
          nowMs,
          worker,
          isWorking,
          numbers: leases.map(({ number }) => number),
          tokens: leases.map(({ token }) => token),
        },
      );
      return renewed.map(({ number }) => number);
    },
    release: async (worker) => {
      await tx.run(
        `UPDATE job SET worker = NULL
        WHERE number IN (SELECT number FROM job WHERE worker = @worker FOR UPDATE SKIP LOCKED)`,
        { worker },
      );
    },
    resume: async (worker, nowMs, isAlone) => {
      if (isAlone) {
        await tx.run(
          `UPDATE job SET crashes = crashes + is_working::int, worker = NULL
          WHERE worker IS NOT NULL AND worker <> @worker`,
          { worker },
        );
      }
      await tx.run(
        `UPDATE job SET due_ms = 0 WHERE number IN (
          SELECT number FROM job WHERE due_ms > 0 AND waits_from_ms > @fromMs FOR UPDATE SKIP LOCKED)`,
        { fromMs: nowMs + CLOCKS_APART_MS },
      );
    },
  };
}

const QUEUES_IN_ORDER = Object.entries(IN_ORDER)
  .filter(([, isInOrder]) => isInOrder)
  .map(([queue]) => queue);

function endsOn(tx: Transaction): Pick<Queue, "complete" | "postpone" | "fail" | "purgeDead"> {
  const changes = async (statement: string, parameters: Parameters): Promise<boolean> =>
    (await tx.run(statement, parameters)) > 0;
  return {
    complete: ({ number, token }) => changes(`DELETE FROM job WHERE ${OF_LEASE}`, { number, token }),
    postpone: ({ number, token }, { dueMs, nowMs, counts }: Wait) =>
      changes(
        `UPDATE job SET worker = NULL, due_ms = @dueMs, waits_from_ms = @nowMs, attempts = attempts + @counts::boolean::int
        WHERE ${OF_LEASE}`,
        { number, token, dueMs, nowMs, counts },
      ),
    fail: ({ number, token }, problem) =>
      changes(
        `UPDATE job SET worker = NULL, is_dead = true, problem = @problem, attempts = attempts + 1 WHERE ${OF_LEASE}`,
        { number, token, problem },
      ),
    purgeDead: (queue, beforeMs, limit) =>
      tx.run(
        `DELETE FROM job WHERE number IN (
          SELECT number FROM job WHERE queue = @queue AND is_dead AND created_ms < @beforeMs LIMIT @limit)`,
        { queue, beforeMs, limit },
      ),
  };
}
