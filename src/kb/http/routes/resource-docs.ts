import {
  AllCollectionsAnswer,
  ChunksAnswer,
  CreateAnswer,
  DeleteAnswer,
  OwnersPageAnswer,
  QueuedAnswer,
  ReadAnswer,
  ResourcesAnswer,
  UpdateAnswer,
} from "../../../wire/answers.ts";
import {
  ChunksQuery,
  CreateBody,
  DeleteQuery,
  ListQuery,
  ReadQuery,
  UpdateBody,
} from "../../../wire/resource.ts";
import { DocumentsAnswer, DocumentsQuery } from "../../../wire/documents.ts";
import { OwnersQuery } from "../../../wire/owners.ts";
import { IDEMPOTENCY_HEADER } from "../../../wire/routes.ts";
import { IDEMPOTENCY_DOC } from "../operation/route-table.ts";
import type { RouteDoc } from "../operation/route-table.ts";

const TAG = "Resources";
const PREFER = {
  prefer:
    "respond-async: 202 at once; metadata.status shows when the text is searchable. With wait=N too, work that is done within N seconds is answered as usual.",
};
const IF_MATCH = { "if-match": "ETag of the expected state; 412 if the resource has another one." };
const IF_NONE_MATCH = { "if-none-match": "Known ETags; 304 if the current one is among them." };
const IDEMPOTENCY = { [IDEMPOTENCY_HEADER]: IDEMPOTENCY_DOC };

/** Descriptions of the operations on resources in the API document. */
export const RESOURCE_DOCS = {
  create: {
    summary: "Creates a resource from text, an uploaded file or a link.",
    tag: TAG,
    body: CreateBody,
    headers: { ...IDEMPOTENCY, ...PREFER },
    answers: { 201: CreateAnswer, 202: QueuedAnswer },
  },
  update: {
    summary: "Changes a resource; readers see the old version until the new one is complete.",
    tag: TAG,
    body: UpdateBody,
    headers: { ...IDEMPOTENCY, ...PREFER, ...IF_MATCH },
    answers: { 200: UpdateAnswer, 202: QueuedAnswer },
  },
  remove: {
    summary: "Deletes a resource; its record remains readable as deleted, unless it is purged.",
    tag: TAG,
    query: DeleteQuery,
    headers: IF_MATCH,
    answers: { 200: DeleteAnswer },
  },
  list: {
    summary: "Lists one owner's resources of a collection.",
    tag: TAG,
    query: ListQuery,
    answers: { 200: ResourcesAnswer },
  },
  read: {
    summary: "Returns one resource with its text.",
    tag: TAG,
    query: ReadQuery,
    headers: IF_NONE_MATCH,
    answers: { 200: ReadAnswer, 304: "empty" },
  },
  chunks: {
    summary: "Lists the chunks of a resource in text order.",
    tag: TAG,
    query: ChunksQuery,
    headers: IF_NONE_MATCH,
    answers: { 200: ChunksAnswer, 304: "empty" },
  },
  documents: {
    summary: "Lists an owner's documents in a collection, filtered and sorted, without their texts.",
    tag: TAG,
    query: DocumentsQuery,
    answers: { 200: DocumentsAnswer },
  },
  owners: {
    summary: "Lists the owners of the resources in the account's collections, with their counts.",
    tag: TAG,
    query: OwnersQuery,
    answers: { 200: OwnersPageAnswer },
  },
  collections: {
    summary: "Lists the three collections of the account.",
    tag: TAG,
    answers: { 200: AllCollectionsAnswer },
  },
} satisfies Record<string, RouteDoc>;
