import type { Failure } from "../../request-note.ts";
import type { Expected, ResourceKey } from "../../resources.ts";
import { SELECT_RESOURCE, type ResourceRow } from "../../rows/records.ts";
import {
  refuseUnexpected,
  WARNING_AFTER_FAILURE,
  WARNING_OF_TEXT,
  type ChangedColumns,
  type NewColumns,
} from "../../rows/resource-columns.ts";
import type { Connection } from "../database/connection.ts";

/** Prepares reads and writes of rows of `resource` on the writing connection. Each runs inside a transaction of the caller. */
export function prepareResourceRows(db: Connection) {
  const select = db.prepare<[string, string], ResourceRow>(
    `${SELECT_RESOURCE} WHERE resource.id = ? AND resource.account_id = ? AND is_deleted = 0`,
  );
  const selectNumbered = db.prepare<[number], ResourceRow>(
    `${SELECT_RESOURCE} WHERE resource.number = ? AND is_deleted = 0`,
  );
  const setFirstRow = db.prepare("UPDATE resource SET first_row = ? WHERE number = ?");
  const insert = db.prepare<NewColumns>(`
    INSERT INTO resource (id, account_id, scope, origin, title, description, url, head, settings, created_at,
      updated_at, first_row, chunks, version, status, metadata, file_metadata, file_token, strategy_used, warning,
      sha256, locations, label)
    VALUES (@id, @accountId, @scope, @origin, @title, @description, @url, @head, @settings, @createdAt,
      @createdAt, @firstRow, @chunks, @version, @status, @metadata, @fileMetadata, @fileToken, @strategyUsed, @warning, @sha256,
      @locations, @label)`);
  const update = db.prepare<ChangedColumns>(`
    UPDATE resource SET title = @title, description = @description, url = @url, head = @head, settings = @settings,
      refreshed_at = @refreshedAt, updated_at = @nowIso, version = @version, first_row = @firstRow, chunks = @chunks,
      status = @status, status_message = @statusMessage, status_error = @statusError, metadata = @metadata, file_metadata = @fileMetadata, file_token = @fileToken,
      strategy_used = @strategyUsed, warning = @warning, sha256 = @sha256, locations = @locations, label = @label,
      revision = revision + 1
    WHERE number = @number`);
  const setQueued = db.prepare(
    `UPDATE resource SET status = 'queued', warning = ${WARNING_OF_TEXT}, updated_at = ?, revision = revision + 1 WHERE number = ?`,
  );
  const setFailed = db.prepare(`
    UPDATE resource SET status = 'error', status_message = ?, status_error = ?, warning = ${WARNING_AFTER_FAILURE}, updated_at = ?,
      revision = revision + 1
    WHERE number = ?`);
  const setDeleted = db.prepare(`
    UPDATE resource SET is_deleted = 1, updated_at = ?, head = '', chunks = 0, sha256 = NULL, locations = NULL, revision = revision + 1
    WHERE number = ?`);
  const release = db.prepare("UPDATE stored_file SET released_at = ?, released_of = ? WHERE token = ?");
  // The delete is the last change of a record, so `updated_at` is its time.
  const purge = db.prepare(`
    DELETE FROM resource WHERE number IN (
      SELECT number FROM resource WHERE is_deleted = 1 AND updated_at < ? LIMIT ?)`);
  const read = (at: ResourceKey): ResourceRow | undefined => select.get(at.id, at.accountId);

  return {
    read,
    /** Reads a resource that is to change. Throws `precondition_failed`. */
    readExpected: (at: ResourceKey & Expected): ResourceRow | undefined => {
      const row = read(at);
      refuseUnexpected(row, at);
      return row;
    },
    /** Reads a resource that this transaction has written. */
    written: (at: ResourceKey): ResourceRow => {
      const row = read(at);
      if (row === undefined) throw new TypeError("a resource just written was not found");
      return row;
    },
    numbered: (number: number): ResourceRow | undefined => selectNumbered.get(number),
    move: ({ number }: ResourceRow, firstRow: number): void => void setFirstRow.run(firstRow, number),
    insert: (columns: NewColumns): number => Number(insert.run(columns).lastInsertRowid),
    update: (columns: ChangedColumns): void => void update.run(columns),
    markQueued: ({ number }: ResourceRow, nowIso: string): void => void setQueued.run(nowIso, number),
    markFailed: ({ number }: ResourceRow, { code, message }: Failure, nowIso: string): void =>
      void setFailed.run(message, code, nowIso, number),
    markDeleted: ({ number }: ResourceRow, nowIso: string): void => void setDeleted.run(nowIso, number),
    /** Notes that a resource no longer uses its file, unless `next` is the same file. */
    releaseFile: ({ id, file_token: token }: ResourceRow, next: string | null, nowIso: string): void => {
      if (token !== null && next !== token) release.run(nowIso, id, token);
    },
    purgeDeleted: (beforeIso: string, limit: number): number => purge.run(beforeIso, limit).changes,
  };
}
