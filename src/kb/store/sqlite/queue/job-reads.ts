import type { Job, JobFigures, QueuedJob } from "../../jobs.ts";
import type { ResourceKey } from "../../records.ts";
import type { Connection } from "../database/connection.ts";

/** Reads of the queue of jobs, on a connection of either kind. */
export interface JobReads {
  queuedJobs(this: void, argument: { readonly after: number; readonly limit: number }): QueuedJob[];
  queuedJob(this: void, at: ResourceKey): QueuedJob | undefined;
  jobOf(at: ResourceKey): Job | undefined;
  jobFigures(this: void, accountId: string | undefined): JobFigures;
}

/** Prepares the statements. */
export function prepareJobReads(db: Connection): JobReads {
  const select = `
    SELECT job.number, id, resource.account_id AS accountId, owner_id AS ownerId, due_ms AS dueMs,
           octet_length(body) AS bodyBytes, begun
      FROM ingest_job AS job
      JOIN resource ON resource.number = job.resource
      JOIN scope ON scope.number = resource.scope`;
  const selectQueued = db.prepare<[number, number], QueuedJob>(
    `${select} WHERE job.number > ? ORDER BY job.number LIMIT ?`,
  );
  const selectHead = db.prepare<[string, string], QueuedJob>(
    `${select} WHERE id = ? AND resource.account_id = ? ORDER BY job.number LIMIT 1`,
  );
  const selectFirst = db.prepare<[string, string], Job>(`
    SELECT job.number, job.kind, body, due_ms AS dueMs, begun, postponed FROM ingest_job AS job
      JOIN resource ON resource.number = job.resource
    WHERE id = ? AND resource.account_id = ? ORDER BY job.number LIMIT 1`);
  const selectFigures = db.prepare<[string | null, string | null], Omit<JobFigures, "failed">>(`
    SELECT count(*) AS waiting, min(created_ms) AS oldestMs FROM ingest_job
    WHERE ? IS NULL OR account_id = ?`);
  const selectFailed = db
    .prepare<[string | null, string | null], number>(
      "SELECT count(*) FROM resource WHERE status = 'error' AND is_deleted = 0 AND (? IS NULL OR account_id = ?)",
    )
    .pluck();

  return {
    queuedJobs: ({ after, limit }) => selectQueued.all(after, limit),
    queuedJob: (at) => selectHead.get(at.id, at.accountId),
    jobOf: (at) => selectFirst.get(at.id, at.accountId),
    jobFigures: (accountId) => {
      const account = accountId ?? null;
      const { waiting, oldestMs } = selectFigures.get(account, account) ?? { waiting: 0, oldestMs: null };
      return { waiting, oldestMs, failed: selectFailed.get(account, account) ?? 0 };
    },
  };
}
