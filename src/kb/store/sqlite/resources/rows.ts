import { hash } from "node:crypto";
import { KbsyncError } from "../../../../lib/failure.ts";
import type { LocatedText } from "../../../../lib/markup/located-text.ts";
import { labelOf } from "../../label.ts";
import { withLines } from "../../locations.ts";
import { titleKeyOf } from "../../title-key.ts";
import type {
  Chunking,
  Expected,
  NewResource,
  ResourceChange,
  ResourceKey,
  ResourceStatus,
} from "../../records.ts";
import type { Connection } from "../database/connection.ts";
import { resourceOf, SELECT_RESOURCE, type ResourceRow } from "../../rows/records.ts";

/** The columns of a row that say where its text lies. */
export interface TextColumns {
  readonly head: string;
  readonly version: number;
  readonly firstRow: number;
  readonly chunks: number;
}

type NewColumns = ReturnType<typeof newColumns> & TextColumns & { readonly scope: number };
type ChangedColumns = ReturnType<typeof changedColumns> & TextColumns & { readonly status: ResourceStatus };

/** Prepares reads and writes of rows of `resource` on the writing connection. Each runs inside a transaction of the caller. */
export function prepareResourceRows(db: Connection) {
  const select = db.prepare<[string, string], ResourceRow>(
    `${SELECT_RESOURCE} WHERE resource.id = ? AND resource.account_id = ? AND is_deleted = 0`,
  );
  const insert = db.prepare<NewColumns>(`
    INSERT INTO resource (id, account_id, scope, origin, title, description, url, head, settings, created_at,
      updated_at, first_row, chunks, version, status, metadata, file_metadata, file_token, strategy_used, warning,
      sha256, locations, label, title_key)
    VALUES (@id, @accountId, @scope, @origin, @title, @description, @url, @head, @settings, @createdAt,
      @createdAt, @firstRow, @chunks, @version, @status, @metadata, @fileMetadata, @fileToken, @strategyUsed, @warning, @sha256,
      @locations, @label, @titleKey)`);
  const update = db.prepare<ChangedColumns>(`
    UPDATE resource SET title = @title, description = @description, url = @url, head = @head, settings = @settings,
      refreshed_at = @refreshedAt, updated_at = @nowIso, version = @version, first_row = @firstRow, chunks = @chunks,
      status = @status, status_message = @statusMessage, status_error = @statusError, metadata = @metadata, file_metadata = @fileMetadata, file_token = @fileToken,
      strategy_used = @strategyUsed, warning = @warning, sha256 = @sha256, locations = @locations, label = @label,
      title_key = @titleKey, revision = revision + 1
    WHERE number = @number`);
  const setQueued = db.prepare(
    "UPDATE resource SET status = 'queued', updated_at = ?, revision = revision + 1 WHERE number = ?",
  );
  const setFailed = db.prepare(`
    UPDATE resource SET status = ?, status_message = ?, status_error = ?, updated_at = ?, revision = revision + 1
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
      const { expectedRevision } = at;
      if (row === undefined || expectedRevision === undefined || row.revision === expectedRevision)
        return row;
      throw new KbsyncError("the resource has changed: If-Match names another state of it", {
        code: "precondition_failed",
        subject: at.id,
        hint: "read it again, and repeat the change with the ETag of that answer",
      });
    },
    /** Reads a resource that this transaction has written. */
    written: (at: ResourceKey): ResourceRow => {
      const row = read(at);
      if (row === undefined) throw new TypeError("a resource just written was not found");
      return row;
    },
    insert: (columns: NewColumns): number => Number(insert.run(columns).lastInsertRowid),
    update: (columns: ChangedColumns): void => void update.run(columns),
    markQueued: ({ number }: ResourceRow, nowIso: string): void => void setQueued.run(nowIso, number),
    markFailed: (
      { number }: ResourceRow,
      status: ResourceStatus,
      { code, message }: { readonly code: string; readonly message: string },
      nowIso: string,
    ): void => void setFailed.run(status, message, code, nowIso, number),
    markDeleted: ({ number }: ResourceRow, nowIso: string): void => void setDeleted.run(nowIso, number),
    /** Notes that a resource no longer uses its file, unless `next` is the same file. */
    releaseFile: ({ id, file_token: token }: ResourceRow, next: string | null, nowIso: string): void => {
      if (token !== null && next !== token) release.run(nowIso, id, token);
    },
    purgeDeleted: (beforeIso: string, limit: number): number => purge.run(beforeIso, limit).changes,
  };
}

/** Returns the columns of a new resource. Without a chunking it is `queued`, and `content` is not its text yet. */
export function newColumns(resource: NewResource, chunking: Chunking | undefined) {
  const { id, accountId, origin, title, description, url, createdAt } = resource;
  return {
    id,
    accountId,
    origin,
    title,
    description,
    url,
    createdAt,
    settings: JSON.stringify(resource.settings),
    metadata: JSON.stringify(resource.metadata ?? {}),
    fileMetadata: JSON.stringify(resource.fileMetadata ?? {}),
    fileToken: resource.fileToken ?? null,
    status: chunking === undefined ? "queued" : "chunked",
    strategyUsed: chunking?.strategyUsed ?? null,
    warning: chunking?.warning ?? null,
    sha256: chunking === undefined ? null : digestOf(resource.content),
    locations: locationsColumn(resource.content, resource.locations),
    label: labelOf(title, resource.metadata ?? {}),
    titleKey: titleKeyOf(title),
  };
}

/** Returns the columns of a changed resource; `text` is its text after the change. */
export function changedColumns(
  before: ResourceRow,
  change: ResourceChange,
  chunking: Chunking | undefined,
  text: string,
) {
  const clearsError = chunking !== undefined || change.clearsError === true;
  const hasText = before.version > 0 || chunking !== undefined;
  const keptSha256 = change.content === undefined ? before.sha256 : null;
  return {
    number: before.number,
    title: change.title ?? before.title,
    label: labelAfter(before, change),
    titleKey: titleKeyOf(change.title ?? before.title),
    description: change.description ?? before.description,
    url: change.url ?? before.url,
    settings: change.settings === undefined ? before.settings : JSON.stringify(change.settings),
    metadata: change.metadata === undefined ? before.metadata : JSON.stringify(change.metadata),
    fileMetadata:
      change.content === undefined ? before.file_metadata : JSON.stringify(change.fileMetadata ?? {}),
    statusMessage: clearsError ? null : before.status_message,
    statusError: clearsError ? null : before.status_error,
    fileToken: change.fileToken === undefined ? before.file_token : change.fileToken,
    sha256: hasText ? (keptSha256 ?? digestOf(text)) : null,
    locations: change.content === undefined ? before.locations : locationsColumn(text, change.locations),
    strategyUsed: chunking === undefined ? before.strategy_used : (chunking.strategyUsed ?? null),
    warning: chunking === undefined ? before.warning : (chunking.warning ?? null),
    refreshedAt: change.completesCreate === true ? before.refreshed_at : change.nowIso,
    nowIso: change.nowIso,
  };
}

/** Returns the label after a change. It stays as it is if title and metadata do, also for metadata from before labels. */
function labelAfter(before: ResourceRow, { title, metadata }: ResourceChange): string {
  if (title === undefined && metadata === undefined) return before.label;
  return labelOf(title ?? before.title, metadata ?? resourceOf(before, "").metadata);
}

/** Returns the SHA-256 of a text as UTF-8. */
function digestOf(text: string): Buffer {
  return hash("sha256", text, "buffer");
}

function locationsColumn(text: string, locations: LocatedText["locations"]): string | null {
  return locations === undefined ? null : JSON.stringify(withLines({ text, locations }));
}
