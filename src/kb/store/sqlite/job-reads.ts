import type { DueJob, Job, JobFigures } from "../jobs.ts";
import type { ResourceKey } from "../store.ts";
import type { Connection } from "./connection.ts";

/** Reads of the queue of jobs, on a connection of either kind. */
export interface JobReads {
  dueJobs(this: void, argument: { readonly nowMs: number; readonly limit: number }): DueJob[];
  nextJobMs(): number | undefined;
  jobOf(at: ResourceKey): Job | undefined;
  jobFigures(this: void, accountId: string | undefined): JobFigures;
}

/** Prepares the statements. */
export function prepareJobReads(db: Connection): JobReads {
  // A job behind another one of its resource waits for that one, even where it is due itself.
  const isFirst = `NOT EXISTS (
    SELECT 1 FROM ingest_job AS before WHERE before.resource = job.resource AND before.number < job.number)`;
  const selectDue = db.prepare<[number, number], DueJob>(`
    SELECT job.number, id, account_id AS accountId, octet_length(body) AS bodyBytes, begun
      FROM ingest_job AS job
      JOIN resource ON resource.number = job.resource
    WHERE due_ms <= ? AND ${isFirst}
    ORDER BY job.number LIMIT ?`);
  const selectNext = db
    .prepare<[], number>(`SELECT due_ms FROM ingest_job AS job WHERE ${isFirst} ORDER BY due_ms LIMIT 1`)
    .pluck();
  const selectFirst = db.prepare<[string, string], Job>(`
    SELECT job.number, job.kind, body, due_ms AS dueMs, begun, postponed FROM ingest_job AS job
      JOIN resource ON resource.number = job.resource
    WHERE id = ? AND account_id = ? ORDER BY job.number LIMIT 1`);
  const selectFigures = db.prepare<[string | null, string | null], Omit<JobFigures, "failed">>(`
    SELECT count(*) AS waiting, min(created_ms) AS oldestMs FROM ingest_job
    WHERE ? IS NULL OR resource IN (SELECT number FROM resource WHERE account_id = ?)`);
  const selectFailed = db
    .prepare<[string | null, string | null], number>(
      "SELECT count(*) FROM resource WHERE status = 'error' AND is_deleted = 0 AND (? IS NULL OR account_id = ?)",
    )
    .pluck();

  return {
    dueJobs: ({ nowMs, limit }) => selectDue.all(nowMs, limit),
    nextJobMs: () => selectNext.get(),
    jobOf: (at) => selectFirst.get(at.id, at.accountId),
    jobFigures: (accountId) => {
      const account = accountId ?? null;
      const { waiting, oldestMs } = selectFigures.get(account, account) ?? { waiting: 0, oldestMs: null };
      return { waiting, oldestMs, failed: selectFailed.get(account, account) ?? 0 };
    },
  };
}
