import { hash } from "node:crypto";
import { KbsyncError } from "../../../../lib/failure.ts";
import type { Lease } from "../../../queue/queue.ts";
import { jobKey } from "../../../queue/completions.ts";
import { linkAddress } from "../../links.ts";
import type { PageStarts } from "../../pages.ts";
import type {
  Chunking,
  Expected,
  NewResource,
  Resource,
  ResourceChange,
  ResourceKey,
  ResourceStatus,
} from "../../records.ts";
import type { Inside } from "../../methods.ts";
import type { ResourceJob } from "../../store.ts";
import type { AnswerNotes } from "../database/answer-notes.ts";
import type { Connection } from "../database/connection.ts";
import { prepareChunkWrites } from "./chunk-writes.ts";
import { readContent } from "./content.ts";
import type { IndexChanges } from "../words/index-changes.ts";
import { prepareDeliveryQueue } from "../queue/delivery-queue.ts";
import type { QueueWrites } from "../queue/queue-writes.ts";
import { prepareMetadataWrites } from "../scopes/metadata-writes.ts";
import type { AccountWrites } from "../accounts/accounts.ts";
import { splitText } from "../database/parts.ts";
import { resourceOf, SELECT_RESOURCE, type ResourceRow } from "../database/records.ts";
import { prepareScopeWrites } from "../scopes/scope-writes.ts";
import type { VectorWrites } from "../vectors/vector-writes.ts";

type ChangeKey = ResourceKey & Expected & { readonly nowIso: string };

/** Writes of resources and their chunks. Each runs inside a transaction of the caller. */
export interface ResourceWrites {
  /** Returns the resource without its content, which the caller has. */
  create(resource: NewResource, chunking: Chunking): Omit<Resource, "content">;
  /** Creates a resource without text, and the job that adds the text. */
  enqueueCreate(resource: NewResource, job: ResourceJob): Omit<Resource, "content">;
  /** `job` is the lease of the job that makes this write. Throws `lease_lost`. */
  update(change: ResourceChange, chunking: Chunking | undefined, job?: Lease): Resource | undefined;
  /** Returns the resource without its content. */
  enqueueUpdate(at: ChangeKey, job: ResourceJob): Resource | undefined;
  /** Ends a failed job and stores the reason. Does nothing if its lease was lost. */
  failJob: Inside<"write">["records"]["failJob"];
  remove(at: ChangeKey): Resource | undefined;
  purgeDeleted: Inside<"free">["records"]["purgeDeleted"];
}

/** Removal of copies of a text outside its resource. */
export type Traces = Pick<AccountWrites, "forgetLink"> & Pick<AnswerNotes, "forgetText">;

/** Prepares the statements on the writing connection. */
export function prepareResourceWrites(
  db: Connection,
  index: IndexChanges,
  vectors: VectorWrites,
  queue: QueueWrites,
  traces: Traces,
): ResourceWrites {
  const selectResource = db.prepare<[string, string], ResourceRow>(
    `${SELECT_RESOURCE} WHERE resource.id = ? AND resource.account_id = ? AND is_deleted = 0`,
  );
  const content = readContent(db);
  const scopes = prepareScopeWrites(db);
  const chunks = prepareChunkWrites(db, index, vectors, scopes);
  const insertResource = db.prepare(`
    INSERT INTO resource (id, account_id, scope, origin, title, description, url, head, settings, created_at,
      updated_at, first_row, chunks, version, status, metadata, file_token, strategy_used, warning,
      sha256, pages)
    VALUES (@id, @accountId, @scope, @origin, @title, @description, @url, @head, @settings, @createdAt,
      @createdAt, @firstRow, @chunks, @version, @status, @metadata, @fileToken, @strategyUsed, @warning, @sha256,
      @pages)`);
  const updateResource = db.prepare(`
    UPDATE resource SET title = @title, description = @description, url = @url, head = @head, settings = @settings,
      refreshed_at = @refreshedAt, updated_at = @nowIso, version = @version, first_row = @firstRow, chunks = @chunks,
      status = @status, status_message = @statusMessage, status_error = @statusError, metadata = @metadata, file_token = @fileToken,
      strategy_used = @strategyUsed, warning = @warning, sha256 = @sha256, pages = @pages,
      revision = revision + 1
    WHERE number = @number`);
  const setQueued = db.prepare(
    "UPDATE resource SET status = 'queued', updated_at = ?, revision = revision + 1 WHERE number = ?",
  );
  const setFailed = db.prepare(`
    UPDATE resource SET status = ?, status_message = ?, status_error = ?, updated_at = ?, revision = revision + 1
    WHERE number = ?`);
  const markDeleted = db.prepare(`
    UPDATE resource SET is_deleted = 1, updated_at = ?, head = '', chunks = 0, sha256 = NULL, pages = NULL, revision = revision + 1
    WHERE number = ?`);
  const release = db.prepare("UPDATE stored_file SET released_at = ? WHERE token = ?");
  // The delete is the last change of a record, so `updated_at` is its time.
  const purge = db.prepare(`
    DELETE FROM resource WHERE number IN (
      SELECT number FROM resource WHERE is_deleted = 1 AND updated_at < ? LIMIT ?)`);
  const metadata = prepareMetadataWrites(db);
  const deliveries = prepareDeliveryQueue(db);
  const removeJobs = db.prepare("DELETE FROM job WHERE queue = 'ingest' AND is_dead = 0 AND line = ?");
  const selectJob = db.prepare<[string]>(
    "SELECT 1 FROM job WHERE queue = 'ingest' AND is_dead = 0 AND line = ? LIMIT 1",
  );
  const selectResourceOf = db.prepare<[number], ResourceKey>(
    "SELECT account_id AS accountId, name AS id FROM job WHERE number = ?",
  );
  const read = (at: ResourceKey): ResourceRow | undefined => selectResource.get(at.id, at.accountId);
  /** Reads a resource that is to change. Throws `precondition_failed`. */
  const readExpected = (at: ResourceKey & Expected): ResourceRow | undefined => {
    const row = read(at);
    const { expectedRevision } = at;
    if (row === undefined || expectedRevision === undefined || row.revision === expectedRevision) return row;
    throw new KbsyncError("the resource has changed: If-Match names another state of it", {
      code: "precondition_failed",
      subject: at.id,
      hint: "read it again, and repeat the change with the ETag of that answer",
    });
  };

  const enqueue = (at: ResourceKey & { readonly ownerId: string }, job: ResourceJob): void =>
    queue.put({
      ...job,
      queue: "ingest",
      accountId: at.accountId,
      ownerId: at.ownerId,
      line: jobKey(at),
      name: at.id,
    });
  /** Returns the state of a resource: `queued` while jobs wait, else by the message of its last failure. */
  const statusOf = (at: ResourceKey, message: string | null): ResourceStatus => {
    if (selectJob.get(jobKey(at)) !== undefined) return "queued";
    return message === null ? "chunked" : "error";
  };

  /** Forgets the fetch of a resource's link if its next address differs; null: the resource is deleted. */
  function forgetLink({ origin, account_id: accountId, url }: ResourceRow, next: string | null): void {
    if (origin !== "link" || url === null) return;
    if (next === null || linkAddress(next) !== linkAddress(url)) traces.forgetLink(accountId, url);
  }

  /** Writes a resource with its chunks and index entries. Without a chunking it is `queued`. */
  function insert(resource: NewResource, chunking: Chunking | undefined): Omit<Resource, "content"> {
    const { head, chunks: parts } =
      chunking === undefined ? { head: "", chunks: [] } : splitText(resource.content, chunking.spans);
    const { scope, collectionId } = scopes.open(resource);
    const firstRow = scopes.reserveRows(scope, parts.length);
    const status = chunking === undefined ? "queued" : "chunked";
    const version = chunking === undefined ? 0 : 1;
    const { lastInsertRowid } = insertResource.run({
      ...pick(resource),
      scope,
      head,
      settings: JSON.stringify(resource.settings),
      metadata: JSON.stringify(resource.metadata ?? {}),
      fileToken: resource.fileToken ?? null,
      firstRow,
      chunks: parts.length,
      version,
      status,
      strategyUsed: chunking?.strategyUsed ?? null,
      warning: chunking?.warning ?? null,
      sha256: chunking === undefined ? null : digestOf(resource.content),
      pages: pagesColumn(resource.pages),
    });
    const number = Number(lastInsertRowid);
    const words =
      chunking === undefined
        ? 0
        : chunks.add({ number, scope, title: resource.title }, parts, chunking, firstRow);
    scopes.count(scope, 1, parts.length, words);
    metadata.add(scope, number, resource.metadata ?? {});
    metadata.noteChange(scope);
    const { content: _, fileToken: __, pages: ___, ...rest } = resource;
    return {
      ...rest,
      metadata: resource.metadata ?? {},
      collectionId,
      version,
      revision: 1,
      chunkCount: parts.length,
      refreshedAt: null,
      updatedAt: resource.createdAt,
      isDeleted: false,
      status,
      statusMessage: null,
      statusError: null,
      strategyUsed: chunking === undefined ? null : (chunking.strategyUsed ?? resource.settings.strategy),
      warning: chunking?.warning ?? null,
    };
  }

  return {
    create(resource, chunking) {
      const created = insert(resource, chunking);
      deliveries.publish("resource.chunked", created, resource.createdAt);
      return created;
    },

    enqueueCreate(resource, job) {
      const queued = insert(resource, undefined);
      enqueue(resource, job);
      return queued;
    },

    update(change, chunking, job) {
      const before = readExpected(change);
      if (before === undefined) return undefined;
      if (job !== undefined && !queue.complete(job))
        throw new KbsyncError("the lease of the job has ended", { code: "lease_lost", subject: change.id });
      const title = change.title ?? before.title;
      const text = change.content ?? content.of(before);
      const clearsError = chunking !== undefined || change.clearsError === true;
      const statusMessage = clearsError ? null : before.status_message;
      const fileToken = change.fileToken === undefined ? before.file_token : change.fileToken;
      const hasText = before.version > 0 || chunking !== undefined;
      const keptSha256 = change.content === undefined ? before.sha256 : null;
      const fields = {
        number: before.number,
        title,
        description: change.description ?? before.description,
        url: change.url ?? before.url,
        settings: change.settings === undefined ? before.settings : JSON.stringify(change.settings),
        metadata: change.metadata === undefined ? before.metadata : JSON.stringify(change.metadata),
        status: statusOf(change, statusMessage),
        statusMessage,
        statusError: clearsError ? null : before.status_error,
        fileToken,
        sha256: hasText ? (keptSha256 ?? digestOf(text)) : null,
        pages: change.content === undefined ? before.pages : pagesColumn(change.pages),
        strategyUsed: chunking === undefined ? before.strategy_used : (chunking.strategyUsed ?? null),
        warning: chunking === undefined ? before.warning : (chunking.warning ?? null),
        refreshedAt: change.completesCreate === true ? before.refreshed_at : change.nowIso,
        nowIso: change.nowIso,
      };
      if (before.file_token !== null && fileToken !== before.file_token) {
        release.run(change.nowIso, before.file_token);
      }
      if (chunking === undefined) {
        const grown = title === before.title ? 0 : chunks.retitle(before, title);
        scopes.count(before.scope, 0, 0, grown);
        const { head, version, chunks: count, first_row: firstRow } = before;
        updateResource.run({ ...fields, head, version, firstRow, chunks: count });
      } else {
        const { head, chunks: parts } = splitText(text, chunking.spans);
        const { firstRow, grown } = chunks.replace(before, title, parts, chunking);
        scopes.count(before.scope, 0, parts.length - before.chunks, grown);
        const version = before.version + 1;
        updateResource.run({ ...fields, head, version, firstRow, chunks: parts.length });
      }
      if (change.metadata !== undefined) {
        metadata.remove(before.scope, before.number, resourceOf(before, "").metadata);
        metadata.add(before.scope, before.number, change.metadata);
      }
      if (change.metadata !== undefined || chunking !== undefined) metadata.noteChange(before.scope);
      forgetLink(before, fields.url);
      const after = resourceOf(existing(read(change)), text);
      if (chunking !== undefined) deliveries.publish("resource.chunked", after, change.nowIso);
      return after;
    },

    enqueueUpdate(at, job) {
      const before = readExpected(at);
      if (before === undefined) return undefined;
      enqueue({ ...at, ownerId: before.owner_id }, job);
      setQueued.run(at.nowIso, before.number);
      return resourceOf(existing(read(at)), "");
    },

    failJob(job, { code, message }, nowIso) {
      const at = selectResourceOf.get(job.number);
      const before = at === undefined ? undefined : read(at);
      if (at === undefined || before === undefined || !queue.complete(job)) return;
      setFailed.run(statusOf(at, message), message, code, nowIso, before.number);
      // The event reports the failure of this job, even if others wait.
      const failed = { ...resourceOf(before, ""), status: "error", statusMessage: message } as const;
      deliveries.publish("resource.error", failed, nowIso);
    },

    purgeDeleted: (beforeIso, limit) => purge.run(beforeIso, limit).changes,

    remove(at) {
      const before = readExpected(at);
      if (before === undefined) return undefined;
      const text = content.of(before);
      scopes.count(before.scope, -1, -before.chunks, -chunks.remove(before));
      removeJobs.run(jobKey(at));
      metadata.remove(before.scope, before.number, resourceOf(before, "").metadata);
      metadata.noteChange(before.scope);
      if (before.file_token !== null) release.run(at.nowIso, before.file_token);
      markDeleted.run(at.nowIso, before.number);
      forgetLink(before, null);
      traces.forgetText(at);
      const deleted = {
        ...resourceOf(before, text),
        isDeleted: true,
        updatedAt: at.nowIso,
        revision: before.revision + 1,
      };
      deliveries.publish("resource.deleted", deleted, at.nowIso);
      return deleted;
    },
  };
}

function pick({ id, accountId, origin, title, description, url, createdAt }: NewResource): object {
  return { id, accountId, origin, title, description, url, createdAt };
}

/** Returns the SHA-256 of a text as UTF-8. */
function digestOf(text: string): Buffer {
  return hash("sha256", text, "buffer");
}

function pagesColumn(pages: PageStarts | undefined): string | null {
  return pages === undefined ? null : JSON.stringify(pages);
}

function existing(row: ResourceRow | undefined): ResourceRow {
  if (row === undefined) throw new TypeError("a resource just written was not found");
  return row;
}
