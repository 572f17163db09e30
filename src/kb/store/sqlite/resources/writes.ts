import { KbsyncError } from "../../../../lib/failure.ts";
import type { Chunking } from "../../chunks.ts";
import type {
  Expected,
  NewResource,
  Resource,
  ResourceChange,
  ResourceKey,
  ResourceStatus,
} from "../../resources.ts";
import type { Inside } from "../../methods.ts";
import type { SameTransaction } from "../../request-note.ts";
import type { ResourceJob } from "../../resources.ts";
import type { AnswerNotes } from "../database/answer-notes.ts";
import type { Connection } from "../database/connection.ts";
import { prepareChunkWrites } from "./chunk-writes.ts";
import { readContent } from "./content.ts";
import type { WordWrites } from "../words/word-writes.ts";
import { prepareDeliveryQueue } from "../queue/delivery-queue.ts";
import type { QueueWrites } from "../queue/queue.ts";
import { prepareMetadataWrites } from "../scopes/metadata-writes.ts";
import { changeFacts, removalFacts, type ChangeFacts } from "../../rows/webhooks.ts";
import { ingestJob } from "../../rows/job-body.ts";
import { splitText } from "../../rows/parts.ts";
import { metadataOf, resourceOf, settingsOf, type ResourceRow } from "../../rows/records.ts";
import { changedColumns, newColumns, type TextColumns } from "../../rows/resource-columns.ts";
import { prepareResourceRows } from "./rows.ts";
import { prepareScopeWrites } from "../scopes/scope-writes.ts";
import type { VectorWrites } from "../vectors/vector-writes.ts";

type ChangeKey = ResourceKey & Expected & { readonly nowIso: string };

/** Writes of resources and their chunks. Each runs inside a transaction of the caller. */
export interface ResourceWrites {
  /** Returns the resource without its content, which the caller has. */
  create(resource: NewResource, chunking: Chunking): Omit<Resource, "content">;
  /** Creates a resource without text, and the job that adds the text. */
  enqueueCreate(resource: NewResource, job: ResourceJob): Omit<Resource, "content">;
  /** Throws `lease_lost`. */
  update(
    change: ResourceChange,
    chunking: Chunking | undefined,
    by?: Pick<SameTransaction, "job" | "failure" | "isPart">,
  ): Resource | undefined;
  /** Returns the resource without its content. */
  enqueueUpdate(at: ChangeKey, job: ResourceJob): Resource | undefined;
  /** Ends a failed job and stores the reason. Does nothing if its lease was lost. */
  failJob: Inside<"write">["records"]["failJob"];
  remove(at: ChangeKey): Resource | undefined;
  purgeDeleted: Inside<"free">["records"]["purgeDeleted"];
  /** Moves the chunks of a resource to new rows, so that the index has their words anew. */
  reindex(resource: number): void;
}

/** Prepares the statements on the writing connection. */
export function prepareResourceWrites(
  db: Connection,
  index: WordWrites,
  vectors: VectorWrites,
  queue: QueueWrites,
  notes: Pick<AnswerNotes, "forgetText">,
): ResourceWrites {
  const rows = prepareResourceRows(db);
  const content = readContent(db);
  const scopes = prepareScopeWrites(db);
  const chunks = prepareChunkWrites(db, index, vectors, scopes);
  const metadata = prepareMetadataWrites(db);
  const deliveries = prepareDeliveryQueue(db);
  const tables = { rows, scopes, chunks, metadata };

  return {
    create(resource, chunking) {
      const { created, change } = insert(tables, resource, chunking);
      deliveries.publish("resource.chunked", created, change);
      return created;
    },

    enqueueCreate(resource, job) {
      const { created: queued } = insert(tables, resource, undefined);
      queue.putChange(ingestJob(resource, job), resource.settings);
      return queued;
    },

    update(change, chunking, { job, failure, isPart = false } = {}) {
      const before = rows.readExpected(change);
      if (before === undefined) return undefined;
      if (job !== undefined && !(isPart ? queue.documentOf(job) : queue.complete(job)))
        throw new KbsyncError("the lease of the job has ended", { code: "lease_lost", subject: change.id });
      const text = change.content ?? content.of(before);
      const columns = changedColumns(before, change, chunking, text);
      const status = isPart ? "chunked" : statusOf(queue, change, columns.statusMessage);
      rows.update({ ...columns, status, ...reindex(tables, before, columns, text, chunking) });
      if (failure !== undefined) rows.markFailed(before, failure, change.nowIso);
      rows.releaseFile(before, columns.fileToken, change.nowIso);
      const written = rows.written(change);
      if (written.metadata !== before.metadata || written.file_metadata !== before.file_metadata) {
        metadata.remove(before.scope, before.number, metadataOf(before));
        metadata.add(before.scope, before.number, metadataOf(written));
      }
      if (change.metadata !== undefined || chunking !== undefined) metadata.noteChange(before.scope);
      const noted = changeFacts(written, change.nowIso);
      const after = resourceOf(written, text);
      const type = chunking === undefined ? "resource.updated" : "resource.chunked";
      deliveries.publish(type, after, noted);
      if (failure !== undefined) deliveries.publish("resource.error", after, noted);
      return after;
    },

    enqueueUpdate(at, job) {
      const before = rows.readExpected(at);
      if (before === undefined) return undefined;
      queue.putChange(ingestJob({ ...at, ownerId: before.owner_id }, job), settingsOf(before));
      rows.markQueued(before, at.nowIso);
      return resourceOf(rows.written(at), "");
    },

    failJob(job, failure, nowIso) {
      const at = queue.documentOf(job);
      const before = at === undefined ? undefined : rows.read(at);
      if (at === undefined || before === undefined || !queue.complete(job)) return;
      rows.markFailed(before, failure, nowIso);
      const written = rows.written(at);
      deliveries.publish("resource.error", resourceOf(written, ""), changeFacts(written, nowIso));
    },

    purgeDeleted: rows.purgeDeleted,

    reindex: (number) => moveChunks(tables, rows.numbered(number)),

    remove(at) {
      const before = rows.readExpected(at);
      if (before === undefined) return undefined;
      const text = content.of(before);
      scopes.count(before.scope, -1, -before.chunks, -chunks.remove(before));
      queue.removeChange(at.accountId, at.id);
      metadata.remove(before.scope, before.number, metadataOf(before));
      metadata.noteChange(before.scope);
      rows.releaseFile(before, null, at.nowIso);
      rows.markDeleted(before, at.nowIso);
      const change = removalFacts(before, at.nowIso);
      notes.forgetText(at);
      const revision = before.revision + 1;
      const deleted = { ...resourceOf(before, text), isDeleted: true, updatedAt: at.nowIso, revision };
      deliveries.publish("resource.deleted", deleted, change);
      return deleted;
    },
  };
}

/** The tables that the text of a resource touches. */
interface TextTables {
  readonly rows: ReturnType<typeof prepareResourceRows>;
  readonly scopes: ReturnType<typeof prepareScopeWrites>;
  readonly chunks: ReturnType<typeof prepareChunkWrites>;
  readonly metadata: ReturnType<typeof prepareMetadataWrites>;
}

/** Writes a resource with its chunks and index entries. Without a chunking it is `queued`. */
function insert(
  { rows, scopes, chunks, metadata }: TextTables,
  resource: NewResource,
  chunking: Chunking | undefined,
): { readonly created: Omit<Resource, "content">; readonly change: ChangeFacts } {
  const { head, chunks: parts } =
    chunking === undefined ? { head: "", chunks: [] } : splitText(resource.content, chunking.spans);
  const { scope } = scopes.open(resource);
  const firstRow = scopes.reserveRows(scope, parts.length);
  const version = chunking === undefined ? 0 : 1;
  const text = { head, version, firstRow, chunks: parts.length };
  const columns = newColumns(resource, chunking);
  const number = rows.insert({ ...columns, ...text, scope });
  const words =
    chunking === undefined ? 0 : chunks.add({ ...columns, number, scope }, parts, chunking, firstRow);
  scopes.count(scope, 1, parts.length, words);
  const written = rows.written(resource);
  metadata.add(scope, number, metadataOf(written));
  metadata.noteChange(scope);
  const change = changeFacts(written, resource.createdAt);
  const { content: _, ...created } = resourceOf(written, "");
  return { created, change };
}

/** Writes the chunks and index entries of a changed text, title or label. */
function reindex(
  { scopes, chunks }: TextTables,
  before: ResourceRow,
  names: Pick<ResourceRow, "title" | "label">,
  text: string,
  chunking: Chunking | undefined,
): TextColumns {
  if (chunking === undefined) {
    const isRenamed = names.title !== before.title || names.label !== before.label;
    const { head, version, chunks: count } = before;
    if (!isRenamed || count === 0) return { head, version, firstRow: before.first_row, chunks: count };
    const { firstRow, grown } = chunks.rename(before, names);
    scopes.count(before.scope, 0, 0, grown);
    return { head, version, firstRow, chunks: count };
  }
  const { head, chunks: parts } = splitText(text, chunking.spans);
  const { firstRow, grown } = chunks.replace(before, names, parts, chunking);
  scopes.count(before.scope, 0, parts.length - before.chunks, grown);
  return { head, version: before.version + 1, firstRow, chunks: parts.length };
}

/** Moves the chunks of a resource to new rows, with entries made anew. */
function moveChunks({ rows, scopes, chunks }: TextTables, row: ResourceRow | undefined): void {
  if (row === undefined || row.chunks === 0) return;
  const { firstRow, grown } = chunks.rename(row, row);
  scopes.count(row.scope, 0, 0, grown);
  rows.move(row, firstRow);
}

/** Returns the state of a resource: `queued` while a change waits, else by the message of its last failure. */
function statusOf(
  queue: QueueWrites,
  { accountId, id }: ResourceKey,
  message: string | null,
): ResourceStatus {
  if (queue.hasChange(accountId, id)) return "queued";
  return message === null ? "chunked" : "error";
}
