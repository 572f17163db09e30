import { KbsyncError } from "../../../../lib/failure.ts";
import { fitsShare } from "../../../../lib/shares.ts";
import { IN_ORDER, LEASE_MS, type LeasedJob, type NewJob } from "../../../queue/queue.ts";
import type { Inside } from "../../methods.ts";
import type { Connection } from "../database/connection.ts";
import { IS_FREE } from "./queue-reads.ts";

/** Writes of the queue. Each runs inside a transaction of the caller. */
export type QueueWrites = Inside<"write" | "free">["queue"];

/** Maximum difference between two machines' clocks: a wait that starts further in the future was written by another clock. */
const CLOCKS_APART_MS = 60_000;

/** Prepares the statements on the writing connection. */
export function prepareQueueWrites(db: Connection): QueueWrites {
  const selectTotals = db.prepare<
    object,
    { jobs: number; ownJobs: number; chars: number; ownChars: number }
  >(`
    SELECT count(*) AS jobs, count(*) FILTER (WHERE account_id = @accountId) AS ownJobs,
      total(chars) AS chars, total(chars) FILTER (WHERE account_id = @accountId) AS ownChars
    FROM job WHERE queue = @queue AND is_dead = 0`);
  // 0 is due at any clock time: the clock may be set back before the job is leased.
  const insert = db.prepare(`
    INSERT INTO job (queue, account_id, owner_id, line, name, due_ms, created_ms, file_token, chars, body)
    VALUES (@queue, @accountId, @ownerId, @line, @name, 0, @nowMs, @fileToken, @chars, @body)`);
  const selectOne = db.prepare<[number], { queue: NewJob["queue"]; line: string }>(
    "SELECT queue, line FROM job WHERE number = ? AND is_dead = 0",
  );
  const selectEarlier = db.prepare<[string, string, number]>(
    "SELECT 1 FROM job WHERE queue = ? AND is_dead = 0 AND line = ? AND number < ? LIMIT 1",
  );
  const lease = db.prepare<object, LeasedJob>(`
    UPDATE job SET crashes = crashes + (worker IS NOT NULL AND worker <> @worker AND is_working), worker = @worker,
      token = token + 1, leased_until_ms = @nowMs + ${LEASE_MS}, is_working = 1
    WHERE number = @number AND (worker = @worker OR (due_ms <= @nowMs OR @isEarly) AND ${IS_FREE})
    RETURNING number, account_id AS accountId, line, crashes, token, name, body, created_ms AS createdMs, attempts`);
  const renew = db
    .prepare<object, number>(`
    UPDATE job SET leased_until_ms = @nowMs + ${LEASE_MS}, is_working = @isWorking
    WHERE number = @number AND token = @token AND worker = @worker RETURNING number`)
    .pluck();
  const ofLease = "number = @number AND token = @token AND worker IS NOT NULL";
  const remove = db.prepare(`DELETE FROM job WHERE ${ofLease}`);
  const postpone = db.prepare(`
    UPDATE job SET worker = NULL, due_ms = @dueMs, waits_from_ms = @nowMs, attempts = attempts + @counts WHERE ${ofLease}`);
  const bury = db.prepare(`
    UPDATE job SET worker = NULL, is_dead = 1, problem = @problem, attempts = attempts + 1 WHERE ${ofLease}`);
  const purgeDead = db.prepare(`
    DELETE FROM job WHERE number IN (
      SELECT number FROM job WHERE queue = ? AND is_dead = 1 AND created_ms < ? LIMIT ?)`);
  const release = db.prepare("UPDATE job SET worker = NULL WHERE worker = ?");
  const endOthers = db.prepare(
    "UPDATE job SET crashes = crashes + is_working, worker = NULL WHERE worker IS NOT NULL AND worker <> ?",
  );
  const endWaits = db.prepare("UPDATE job SET due_ms = 0 WHERE due_ms > 0 AND waits_from_ms > ?");

  return {
    put: ({ jobsMax, charsMax = Infinity, ownerId = "", fileToken = null, ...job }) => {
      const total = selectTotals.get(job) ?? { jobs: 0, ownJobs: 0, chars: 0, ownChars: 0 };
      const chars = job.body.length;
      if (
        !fitsShare(jobsMax, total.jobs, total.ownJobs, 1) ||
        !fitsShare(charsMax, total.chars, total.ownChars, chars)
      )
        throw new KbsyncError("too much work is waiting", { code: "queue_full", retryable: true });
      insert.run({ ...job, ownerId, fileToken, chars });
    },
    lease: ({ isEarly = false, ...request }) => {
      const job = selectOne.get(request.number);
      if (job === undefined) return undefined;
      const { queue, line } = job;
      if (IN_ORDER[queue] && selectEarlier.get(queue, line, request.number) !== undefined) return undefined;
      return lease.get({ ...request, isEarly: Number(isEarly) });
    },
    renew: ({ leases, worker, nowMs, isWorking }) =>
      leases.flatMap(({ number, token }) =>
        renew.all({ number, token, worker, nowMs, isWorking: Number(isWorking) }),
      ),
    complete: ({ number, token }) => remove.run({ number, token }).changes > 0,
    postpone: ({ number, token }, { dueMs, nowMs, counts }) =>
      postpone.run({ number, token, dueMs, nowMs, counts: Number(counts) }).changes > 0,
    fail: ({ number, token }, problem) => bury.run({ number, token, problem }).changes > 0,
    purgeDead: (queue, beforeMs, limit) => purgeDead.run(queue, beforeMs, limit).changes,
    release: (worker) => void release.run(worker),
    resume: (worker, nowMs, isAlone) => {
      if (isAlone) endOthers.run(worker);
      endWaits.run(nowMs + CLOCKS_APART_MS);
    },
  };
}
