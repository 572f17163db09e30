import assert from "node:assert/strict";
import { KbsyncError } from "../../../../lib/failure.ts";
import type { NewJob } from "../../../queue/queue.ts";
import type { Chunking } from "../../chunks.ts";
import type { RequestNote } from "../../request-note.ts";
import type { NewResource, Resource, ResourceJob } from "../../resources.ts";
import { changeFacts } from "../../rows/webhooks.ts";
import { ingestJob } from "../../rows/job-body.ts";
import { splitText } from "../../rows/parts.ts";
import { resourceOf, type ResourceRow } from "../../rows/records.ts";
import { newColumns } from "../../rows/resource-columns.ts";
import type { Transaction } from "../database/connections.ts";
import { runSteps } from "../database/steps.ts";
import { publishAll } from "../queue/deliveries.ts";
import { QUEUE } from "../queue/queue.ts";
import { addMetadata } from "../scopes/metadata.ts";
import { changeScopes, openScopes, type OpenScope, type ScopeChange } from "../scopes/scopes.ts";
import { encodeChunks, writeChunks, type NewChunks, type PlacedChunks } from "./chunks.ts";
import { noteResources } from "./request-notes.ts";
import { insertRows, reserveNumbers } from "./rows.ts";

/** A resource that is not written yet, with all that is computed of it beforehand. */
export interface NewDocument {
  readonly resource: NewResource;
  readonly columns: ReturnType<typeof newColumns>;
  /** The text before the first chunk. */
  readonly head: string;
  /** Undefined: it is `queued`. */
  readonly chunks: NewChunks | undefined;
  /** The job that adds the text of a queued one. */
  readonly job: NewJob | undefined;
  readonly request: RequestNote | undefined;
}

/** What is written with a new resource: its chunks, or the job that adds its text. */
interface NewParts {
  readonly chunking?: Chunking;
  readonly job?: ResourceJob;
  readonly request: RequestNote | undefined;
}

/** Encodes a new resource. Pure. Throws `internal`, as `encodeChunks`. */
export function newDocument(resource: NewResource, { chunking, job, request }: NewParts): NewDocument {
  const columns = newColumns(resource, chunking);
  const whole = { resource, columns, request };
  if (chunking === undefined) {
    return { ...whole, head: "", chunks: undefined, job: job && ingestJob(resource, job) };
  }
  const { head, chunks: parts } = splitText(resource.content, chunking.spans);
  return { ...whole, head, chunks: encodeChunks(columns, parts, chunking), job: undefined };
}

/** Creates one resource. */
export async function createOne(tx: Transaction, document: NewDocument): Promise<Resource> {
  const [created] = await createAll(tx, document.resource.accountId, [document]);
  if (created === undefined || created instanceof KbsyncError)
    throw created ?? new TypeError("a resource just written was not returned");
  return created;
}

/**
 * Creates resources of one account with few statements, which are sent without waiting for each other's answers where they do not need
 * them. Returns each resource, or `queue_full` for one that was not written. If it throws, nothing may be committed. Rows are locked in
 * one order, so that groups of several processes do not wait for each other in a circle: scopes, notes, and last the account.
 */
export async function createAll(
  tx: Transaction,
  accountId: string,
  documents: readonly NewDocument[],
): Promise<(Resource | KbsyncError)[]> {
  const refused = await refuseFull(tx, documents);
  const written = await placeAll(
    tx,
    accountId,
    documents.filter((document) => !refused.has(document)),
  );
  if (written.length > 0) await writeAll(tx, accountId, written);
  const created = new Map(written.map(({ document, resource }) => [document, resource]));
  return documents.map((document) => {
    const outcome = created.get(document) ?? refused.get(document);
    assert(outcome !== undefined);
    return outcome;
  });
}

/** Finds the documents whose jobs the queue has no room for. */
async function refuseFull(
  tx: Transaction,
  documents: readonly NewDocument[],
): Promise<Map<NewDocument, KbsyncError>> {
  const queued = documents.flatMap((document) =>
    document.job === undefined ? [] : { document, job: document.job },
  );
  const refused = new Map<NewDocument, KbsyncError>();
  if (queued.length === 0) return refused;
  const failures = await runSteps(tx, QUEUE.refusals(queued.map(({ job }) => job)));
  for (const [at, { document }] of queued.entries()) {
    const failure = failures[at];
    if (failure !== undefined) refused.set(document, failure);
  }
  return refused;
}

/** A document with the rows that are reserved for it. */
interface Placed {
  readonly document: NewDocument;
  readonly row: ResourceRow;
  readonly resource: Resource;
}

/** Locks the scopes of documents, and reserves rows for them and their chunks. */
async function placeAll(
  tx: Transaction,
  accountId: string,
  documents: readonly NewDocument[],
): Promise<Placed[]> {
  if (documents.length === 0) return [];
  const scopes = await openScopes(
    tx,
    accountId,
    documents.map(({ resource }) => resource),
  );
  const inScopes = Array.from(documents, (document, at) => ({ document, scope: scopes[at] ?? fail() }));
  const changes = new Map(
    [...Map.groupBy(inScopes, ({ scope }) => scope.number)].map(([number, of]) => [
      number,
      changeOf(of.map(({ document }) => document)),
    ]),
  );
  const [next, numbers] = await Promise.all([
    changeScopes(tx, changes),
    reserveNumbers(tx, documents.length),
  ]);
  return inScopes.map(({ document, scope }, at) => {
    const firstRow = next.get(scope.number) ?? fail();
    const row = rowOf(document, scope, numbers[at] ?? fail(), firstRow);
    next.set(scope.number, firstRow + row.chunks);
    const resource = resourceOf(row, document.chunks === undefined ? "" : document.resource.content);
    return { document, row, resource };
  });
}

function fail(): never {
  throw new TypeError("a scope just changed, or a number just reserved, was not returned");
}

/** Returns what documents add to their scope. */
function changeOf(documents: readonly NewDocument[]): ScopeChange {
  const sum = (of: (chunks: NewChunks) => number): number =>
    documents.reduce((total, { chunks }) => total + (chunks === undefined ? 0 : of(chunks)), 0);
  const chunks = sum(({ parts }) => parts.length);
  return {
    resources: documents.length,
    rows: chunks,
    chunks,
    words: sum(({ words }) => words.total),
    segments: sum(({ words }) => words.segments.length),
    refilters: true,
  };
}

/** Returns the row of a new document. */
function rowOf(
  { resource, columns, head, chunks }: NewDocument,
  { number: scope, collectionId }: OpenScope,
  number: number,
  firstRow: number,
): ResourceRow {
  return {
    number,
    id: columns.id,
    account_id: columns.accountId,
    scope,
    collection_id: collectionId,
    tier: resource.tier,
    owner_id: resource.ownerId,
    origin: columns.origin,
    title: columns.title,
    label: columns.label,
    description: columns.description,
    url: columns.url,
    head,
    settings: columns.settings,
    created_at: columns.createdAt,
    refreshed_at: null,
    updated_at: columns.createdAt,
    is_deleted: false,
    version: chunks === undefined ? 0 : 1,
    first_row: firstRow,
    chunks: chunks?.parts.length ?? 0,
    revision: 1,
    status: chunks === undefined ? "queued" : "chunked",
    status_message: null,
    status_error: null,
    metadata: columns.metadata,
    file_metadata: columns.fileMetadata,
    file_token: columns.fileToken,
    strategy_used: columns.strategyUsed,
    warning: columns.warning,
    sha256: columns.sha256,
    locations: columns.locations,
  };
}

/** Writes documents to their rows, then what others notice of them. */
async function writeAll(tx: Transaction, accountId: string, written: readonly Placed[]): Promise<void> {
  const rows = written.map(({ row }) => row);
  const placed = written.flatMap(({ document: { chunks }, row }): PlacedChunks[] =>
    chunks === undefined
      ? []
      : [{ ...chunks, scope: row.scope, resource: row.number, firstRow: row.first_row }],
  );
  const notes = written.flatMap(({ document: { request }, resource }) => {
    const { content: _, ...noted } = resource;
    return request === undefined ? [] : { resource: noted, request };
  });
  const jobs = written.flatMap(({ document: { job } }) => job ?? []);
  // A document without a text is reported when it has one.
  const events = written.flatMap(({ row, document: { chunks }, resource }) =>
    chunks === undefined ? [] : [{ resource, change: changeFacts(row, row.created_at) }],
  );
  await Promise.all([
    insertRows(tx, rows),
    writeChunks(tx, accountId, placed),
    addMetadata(tx, accountId, rows),
    noteResources(tx, accountId, notes),
  ]);
  if (events.length > 0) await publishAll(tx, "resource.chunked", accountId, events);
  await runSteps(tx, QUEUE.insert(jobs));
}
