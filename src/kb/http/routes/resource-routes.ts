import { hash } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import { Readable } from "node:stream";
import type { FastifyInstance } from "fastify";
import type { z } from "zod";
import type { DeletedResource, LiveResource } from "../../../wire/answers.ts";
import { DocumentsQuery } from "../../../wire/documents.ts";
import { OwnersQuery } from "../../../wire/owners.ts";
import { ChunksQuery, CreateBody, ListQuery, ReadQuery, UpdateBody } from "../../../wire/resource.ts";
import { ROUTES } from "../../../wire/routes.ts";
import { MAIL_TYPE } from "../../../wire/constants.ts";
import type { RequestContext } from "../../resources/request-context.ts";
import { queueUpdate, updateResource } from "../../jobs/change.ts";
import { waitForJobs } from "../../jobs/wait-for-jobs.ts";
import { createResource, queueCreate } from "../../resources/create.ts";
import type { KnowledgeBase } from "../../resources/knowledge-base.ts";
import { listDocuments } from "../../resources/documents.ts";
import { listResources, textBytes } from "../../resources/list.ts";
import { isQuickCreate, isQuickUpdate } from "../../resources/quick.ts";
import {
  readAnyResource,
  readChunks,
  readCollections,
  readOwners,
  readResource,
  refuseOtherVersion,
} from "../../resources/read.ts";
import {
  createdRecord,
  deletedRecord,
  liveRecord,
  queuedRecord,
  wholeRecord,
} from "../../resources/record.ts";
import { removeResource } from "../../resources/remove.ts";
import type { StoredAnswer } from "../../store/request-note.ts";
import type { Resource } from "../../store/resources.ts";
import type { ResponseShare } from "../limits/response-memory.ts";
import { asyncPreference, etagOf, preconditionOf } from "../body/conditions.ts";
import { readStoredAnswer } from "../operation/idempotency.ts";
import { chunksText, listText, oneText, PART_CHARS } from "../body/list-text.ts";
import { addOperation, answer, idOf } from "../operation/operation.ts";
import type { HttpParts } from "../operation/operation.ts";
import { RESOURCE_DOCS } from "./resource-docs.ts";
import type { Urgent } from "../limits/urgent.ts";
import { readBody, readInput } from "../body/validate.ts";

/** The answer before the work is done, recognised by its status and by the record's `metadata.status`. */
const QUEUED = {
  message: "Resource accepted; metadata.status shows when it is searchable",
  status: 202,
} as const;
/** URL of the operations on one resource. */
const ONE = `${ROUTES.resource}/:id`;

/** Adds operations 2, 4, 5 and 6, and the additions that read resources and collections. */
export function addResourceRoutes(server: FastifyInstance, parts: HttpParts, bodyBytesMax: number): void {
  addChangeRoutes(server, parts, bodyBytesMax);
  addReadRoutes(server, parts);
}

/** Adds create, update and delete. */
function addChangeRoutes(server: FastifyInstance, parts: HttpParts, bodyBytesMax: number): void {
  const { kb } = parts;
  const { created, updated, later, replay } = changeAnswers(parts);
  const isQuick = async (accountId: string, id: string, body: UpdateBody): Promise<boolean> => {
    const before = await kb.records.resource({ accountId, id });
    return before !== undefined && isQuickUpdate(before, body);
  };

  addOperation(server, parts, {
    method: "POST",
    url: ROUTES.resource,
    scope: "write",
    doc: RESOURCE_DOCS.create,
    bodyBytesMax,
    replay: replay(created),
    handle: async (request, accountId, context) => {
      const body = readBody(CreateBody, request.body);
      const preference = asyncPreference(request.headers);
      const isNow = preference === undefined || (preference.waitMs > 0 && isQuickCreate(body));
      const create = { accountId, body, context };
      if (isNow) return created(await createResource(kb, create));
      const made = await queueCreate(kb, create);
      return later(await waitForJobs(kb, made, preference.waitMs), created);
    },
  });

  addOperation(server, parts, {
    method: "PUT",
    url: ONE,
    scope: "write",
    doc: RESOURCE_DOCS.update,
    bodyBytesMax,
    replay: replay(updated),
    handle: async (request, accountId, context, share) => {
      const body = readBody(UpdateBody, request.body);
      const id = idOf(request);
      const expected = { ...context, ...preconditioned(request.headers), ...roomFor(share) };
      const update = { accountId, id, body, context: expected };
      const preference = asyncPreference(request.headers);
      const isNow =
        preference === undefined || (preference.waitMs > 0 && (await isQuick(accountId, id, body)));
      if (isNow) return updated(await updateResource(kb, update), share);
      const changed = await queueUpdate(kb, update);
      return later(await waitForJobs(kb, changed, preference.waitMs), (resource) => updated(resource, share));
    },
  });

  addOperation(server, parts, {
    method: "DELETE",
    url: ONE,
    scope: "write",
    doc: RESOURCE_DOCS.remove,
    handle: async (request, accountId, _context, share) => {
      const expected = { ...preconditioned(request.headers), ...roomFor(share) };
      const resource = await removeResource(kb, accountId, idOf(request), expected);
      return recordAnswer(parts, "Resource deleted successfully", resource, share, deletedRecord);
    },
  });
}

/** Adds the reads of resources, chunks, owners and collections. */
function addReadRoutes(server: FastifyInstance, parts: HttpParts): void {
  const { kb } = parts;

  addOperation(server, parts, {
    method: "GET",
    url: ROUTES.byCollection,
    scope: "read",
    doc: RESOURCE_DOCS.list,
    handle: async (request, accountId, _context, share) => {
      const query = readInput(ListQuery, request.query);
      const listing = await listResources(kb, accountId, query, share);
      const resources = eachShown(kb, listing.resources, query);
      return { status: 200, stream: streamOf(parts, listText({ ...listing, resources })) };
    },
  });

  addOperation(server, parts, {
    method: "GET",
    url: ONE,
    scope: "read",
    doc: RESOURCE_DOCS.read,
    handle: async (request, accountId, _context, share) => {
      const query = readInput(ReadQuery, request.query);
      const found = await readAnyResource(kb, accountId, idOf(request));
      refuseOtherVersion(found.version, query.version);
      const resource = shown(found, query);
      share.take(textBytes(resource));
      return recordAnswer(parts, "Resource fetched successfully", resource, share, wholeRecord);
    },
  });

  addOperation(server, parts, {
    method: "GET",
    url: `${ONE}/chunks`,
    scope: "read",
    doc: RESOURCE_DOCS.chunks,
    handle: async (request, accountId, _context, share) => {
      const query = readInput(ChunksQuery, request.query);
      const chunks = await readChunks(kb, accountId, idOf(request));
      refuseOtherVersion(chunks.version, query.version);
      share.take(chunks.chunks.reduce((sum, { content }) => sum + Buffer.byteLength(content), 0));
      // Another title is no other version, and the answer shows it.
      const title = hash("sha256", chunks.title, "base64url").slice(0, 12);
      const etag = `"${chunks.resourceId}-chunks-${chunks.version}-${title}"`;
      return {
        status: 200,
        stream: streamOf(parts, chunksText("Chunks fetched successfully", chunks)),
        etag,
      };
    },
  });

  addOperation(server, parts, {
    method: "GET",
    url: ROUTES.documents,
    scope: "read",
    doc: RESOURCE_DOCS.documents,
    handle: async (request, accountId) => {
      const page = await listDocuments(kb, accountId, readInput(DocumentsQuery, request.query));
      return answer(200, "Documents fetched successfully", page);
    },
  });

  addOperation(server, parts, {
    method: "GET",
    url: ROUTES.owners,
    scope: "read",
    doc: RESOURCE_DOCS.owners,
    handle: async (request, accountId) => {
      const page = await readOwners(kb, accountId, readInput(OwnersQuery, request.query));
      return answer(200, "Owners fetched successfully", page);
    },
  });

  addOperation(server, parts, {
    method: "GET",
    url: ROUTES.collections,
    scope: "read",
    doc: RESOURCE_DOCS.collections,
    handle: async (_request, accountId) => {
      const collections = await readCollections(kb, accountId);
      return answer(200, "Collections fetched successfully", {
        collections,
        reads: [MAIL_TYPE],
        metadata: true,
        locations: true,
      });
    },
  });
}

/** Makes the answers to creates and updates, finished or queued. */
function changeAnswers(parts: HttpParts) {
  const { kb } = parts;
  const created = (resource: Resource) => ({
    ...answer(201, "Resource created successfully", createdRecord(withReachableUrl(kb, resource))),
    etag: etagOf(resource),
  });
  const updated = (resource: Resource, share: ResponseShare) =>
    recordAnswer(parts, "Resource updated successfully", resource, share, liveRecord);
  const queued = (resource: Resource) => ({
    ...answer(QUEUED.status, QUEUED.message, queuedRecord(withReachableUrl(kb, resource))),
    etag: etagOf(resource),
    headers: { "preference-applied": "respond-async", location: `${ROUTES.resource}/${resource.id}` },
  });
  /** Returns the final answer if the work is done, else the early one, whose status also shows work that failed. */
  const later = <T>(resource: Resource, done: (resource: Resource) => T) =>
    resource.status === "chunked" ? done(resource) : queued(resource);
  /** Returns the answer to a repeated request, by the status of the first one. */
  const replay =
    <T>(done: (resource: Resource, share: ResponseShare) => T) =>
    async (accountId: string, noted: StoredAnswer, share: ResponseShare) => {
      const note = readStoredAnswer(noted);
      if (note.kind !== "resource" && note.kind !== "reference")
        throw new Error("a resource was noted as something else");
      const resource =
        note.kind === "resource" ? note.resource : await readResource(kb, accountId, note.resourceId);
      if (noted.status === QUEUED.status) return queued(resource);
      share.take(textBytes(resource));
      return done(resource, share);
    };
  return { created, updated, later, replay };
}

function preconditioned(headers: IncomingHttpHeaders): RequestContext {
  const precondition = preconditionOf(headers);
  return precondition === undefined ? {} : { precondition };
}

/** Refuses a change before it is made if there is no memory for its answer. */
function roomFor(share: ResponseShare): RequestContext {
  return { makeRoom: (before) => share.take(textBytes(before)) };
}

/** Returns the answer with a whole record, streamed if its text is long. Counts its memory even if there is none left. */
function recordAnswer<T extends LiveResource | DeletedResource>(
  parts: HttpParts,
  message: string,
  resource: Resource,
  share: ResponseShare,
  recordOf: (resource: Resource) => T,
) {
  share.force(textBytes(resource));
  const record = recordOf(withReachableUrl(parts.kb, resource));
  const etag = etagOf(resource);
  return record.content.length <= PART_CHARS
    ? { ...answer(200, message, record), etag }
    : { status: 200, stream: streamOf(parts, oneText(message, record)), etag };
}

function streamOf({ urgent }: HttpParts, text: Iterable<string> | AsyncIterable<string>): Readable {
  return Readable.from(inSlices(text, urgent), { objectMode: false });
}

/** Yields pieces of text, each in a slice of bulk work: a fast client would otherwise read all in one turn. */
async function* inSlices(
  text: Iterable<string> | AsyncIterable<string>,
  { pause }: Pick<Urgent, "pause">,
): AsyncGenerator<string> {
  for await (const piece of text) {
    yield piece;
    await pause();
  }
}

/** Returns the resource with the current address of its file: the port may have changed since the upload. */
function withReachableUrl({ addresses }: KnowledgeBase, resource: Resource): Resource {
  return resource.url === null ? resource : { ...resource, url: addresses.reachable(resource.url) };
}

/** Returns the resource without its text if the query asks for that. */
function shown(resource: Resource, { content }: z.infer<typeof ReadQuery>): Resource {
  return content === "false" ? { ...resource, content: "" } : resource;
}

async function* eachShown(
  kb: KnowledgeBase,
  resources: AsyncIterable<Resource>,
  query: z.infer<typeof ReadQuery>,
): AsyncGenerator<Resource> {
  for await (const resource of resources) yield withReachableUrl(kb, shown(resource, query));
}
