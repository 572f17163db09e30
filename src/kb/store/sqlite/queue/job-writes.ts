import { KbsyncError } from "../../../../lib/failure.ts";
import { fitsShare } from "../../../../lib/shares.ts";
import type { NewJob } from "../../jobs.ts";
import type { ResourceStatus } from "../../records.ts";
import type { Connection } from "../database/connection.ts";

/** Writes of the queue of jobs; each runs inside a transaction of the caller. */
export interface JobWrites {
  /** Throws `queue_full`. */
  add(resource: { readonly number: number; readonly accountId: string }, job: NewJob): void;
  begin(this: void, number: number): number;
  postpone(this: void, argument: { readonly number: number; readonly dueMs: number }): void;
  handBack(this: void, argument: { readonly number: number; readonly begun: number }): void;
  remove(number: number): void;
  /** Takes all jobs of a resource out of the queue. */
  removeAll(resource: number): void;
  /** What a resource's state is, given why its last text failed: `queued` while jobs wait. */
  statusOf(resource: number, message: string | null): ResourceStatus;
  /** The resource of a job. */
  resourceOf(number: number): { readonly id: string; readonly accountId: string } | undefined;
}

/** Prepares the statements on the writing connection. */
export function prepareJobWrites(db: Connection): JobWrites {
  const selectTotals = db.prepare<
    { accountId: string },
    { jobs: number; ownJobs: number; chars: number; ownChars: number }
  >(`
    SELECT count(*) AS jobs, count(*) FILTER (WHERE account_id = @accountId) AS ownJobs,
           total(chars) AS chars, total(chars) FILTER (WHERE account_id = @accountId) AS ownChars
      FROM ingest_job`);
  // Due whatever the clock says: it may be set back before the job begins.
  const insert = db.prepare(`
    INSERT INTO ingest_job (resource, account_id, kind, due_ms, created_ms, file_token, chars, body)
    VALUES (@resource, @accountId, @kind, 0, @nowMs, @fileToken, @chars, @body)`);
  const begin = db
    .prepare<[number], number>("UPDATE ingest_job SET begun = begun + 1 WHERE number = ? RETURNING begun")
    .pluck();
  const postpone = db.prepare(
    "UPDATE ingest_job SET begun = begun - 1, postponed = postponed + 1, due_ms = ? WHERE number = ?",
  );
  const handBack = db.prepare("UPDATE ingest_job SET begun = min(begun, ?) WHERE number = ?");
  const remove = db.prepare("DELETE FROM ingest_job WHERE number = ?");
  const removeAll = db.prepare("DELETE FROM ingest_job WHERE resource = ?");
  const selectOne = db.prepare<[number]>("SELECT 1 FROM ingest_job WHERE resource = ?");
  const selectResource = db.prepare<[number], { id: string; accountId: string }>(`
    SELECT id, resource.account_id AS accountId FROM ingest_job JOIN resource ON resource.number = ingest_job.resource
    WHERE ingest_job.number = ?`);

  return {
    add: ({ number, accountId }, { kind, body, fileToken, nowMs, jobsMax, charsMax }) => {
      const held = selectTotals.get({ accountId }) ?? { jobs: 0, ownJobs: 0, chars: 0, ownChars: 0 };
      if (
        !fitsShare(jobsMax, held.jobs, held.ownJobs, 1) ||
        !fitsShare(charsMax, held.chars, held.ownChars, body.length)
      ) {
        throw new KbsyncError("too many documents are waiting to be taken in", {
          code: "queue_full",
          retryable: true,
        });
      }
      insert.run({ resource: number, accountId, kind, nowMs, fileToken, chars: body.length, body });
    },
    begin: (number) => begin.get(number) ?? 0,
    postpone: ({ number, dueMs }) => {
      postpone.run(dueMs, number);
    },
    handBack: ({ number, begun: before }) => {
      handBack.run(before, number);
    },
    remove: (number) => {
      remove.run(number);
    },
    removeAll: (resource) => {
      removeAll.run(resource);
    },
    statusOf: (resource, message) => {
      if (selectOne.get(resource) !== undefined) return "queued";
      return message === null ? "chunked" : "error";
    },
    resourceOf: (number) => selectResource.get(number),
  };
}
