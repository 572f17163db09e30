import { Readable } from "node:stream";
import type { FastifyInstance } from "fastify";
import { CreateBody, ListQuery, UpdateBody } from "../../wire/resource.ts";
import { ROUTES } from "../../wire/routes.ts";
import { createResource } from "../resources/create.ts";
import type { KnowledgeBase } from "../resources/knowledge-base.ts";
import { listResources } from "../resources/list.ts";
import { readChunks, readCollections, readResource } from "../resources/read.ts";
import { createdRecord, fullRecord } from "../resources/record.ts";
import { removeResource } from "../resources/remove.ts";
import { updateResource } from "../resources/update.ts";
import type { Resource } from "../store/store.ts";
import { listText, oneText, PART_CHARS } from "./list-text.ts";
import { addOperation } from "./operation.ts";
import type { Answer, HttpParts } from "./operation.ts";
import { readBody, readInput } from "./validate.ts";

const UPDATED = "Resource updated successfully";

/** Operations 2, 4, 5 and 6, and the additions that read resources and collections. */
export function addResourceRoutes(server: FastifyInstance, parts: HttpParts, bodyBytesMax: number): void {
  const { kb } = parts;
  const oneResource = `${ROUTES.resource}/:id`;
  const created = (resource: Resource): Answer =>
    answer(201, "Resource created successfully", createdRecord(withReachableUrl(kb, resource)), resource.id);
  const record = (message: string, resource: Resource): Answer =>
    recordAnswer(message, withReachableUrl(kb, resource));

  addOperation(server, parts, {
    method: "POST",
    url: ROUTES.resource,
    scope: "write",
    bodyBytesMax,
    again: async (accountId, id) => created(await readResource(kb, accountId, id)),
    handle: async (request, accountId) =>
      created(await createResource(kb, accountId, readBody(CreateBody, request.body))),
  });

  addOperation(server, parts, {
    method: "PUT",
    url: oneResource,
    scope: "write",
    bodyBytesMax,
    again: async (accountId, id) => record(UPDATED, await readResource(kb, accountId, id)),
    handle: async (request, accountId) => {
      const body = readBody(UpdateBody, request.body);
      const resource = await updateResource(kb, accountId, idOf(request.params), body);
      return record(UPDATED, resource);
    },
  });

  addOperation(server, parts, {
    method: "DELETE",
    url: oneResource,
    scope: "write",
    handle: async (request, accountId) => {
      const resource = await removeResource(kb, accountId, idOf(request.params));
      return record("Resource deleted successfully", resource);
    },
  });

  addOperation(server, parts, {
    method: "GET",
    url: ROUTES.byCollection,
    scope: "read",
    handle: async (request, accountId) => {
      const listing = await listResources(kb, accountId, readInput(ListQuery, request.query));
      const resources = eachReachable(kb, listing.resources);
      return { status: 200, stream: streamOf(listText({ ...listing, resources })) };
    },
  });

  addOperation(server, parts, {
    method: "GET",
    url: oneResource,
    scope: "read",
    handle: async (request, accountId) => {
      const resource = await readResource(kb, accountId, idOf(request.params));
      return record("Resource fetched successfully", resource);
    },
  });

  addOperation(server, parts, {
    method: "GET",
    url: `${oneResource}/chunks`,
    scope: "read",
    handle: async (request, accountId) => {
      const chunks = await readChunks(kb, accountId, idOf(request.params));
      return answer(200, "Chunks fetched successfully", chunks);
    },
  });

  addOperation(server, parts, {
    method: "GET",
    url: ROUTES.collections,
    scope: "read",
    handle: async (_request, accountId) => {
      const collections = await readCollections(kb, accountId);
      return answer(200, "Collections fetched successfully", { collections });
    },
  });
}

function answer(status: number, message: string, data: object, resourceId?: string): Answer {
  const body = { success: true, message, data };
  return resourceId === undefined ? { status, body } : { status, body, resourceId };
}

/** The answer of a whole record, in pieces where its text is long. */
function recordAnswer(message: string, resource: Resource): Answer {
  if (resource.content.length <= PART_CHARS) return answer(200, message, fullRecord(resource), resource.id);
  return { status: 200, stream: streamOf(oneText(message, resource)), resourceId: resource.id };
}

function streamOf(text: Iterable<string> | AsyncIterable<string>): Readable {
  return Readable.from(text, { objectMode: false });
}

/** The resource with its file where it is served now: the port may have been another when it was made. */
function withReachableUrl({ addresses }: KnowledgeBase, resource: Resource): Resource {
  return resource.url === null ? resource : { ...resource, url: addresses.reachable(resource.url) };
}

async function* eachReachable(
  kb: KnowledgeBase,
  resources: AsyncIterable<Resource>,
): AsyncGenerator<Resource> {
  for await (const resource of resources) yield withReachableUrl(kb, resource);
}

function idOf(params: unknown): string {
  return (params as { id: string }).id; // every route here has this parameter
}
