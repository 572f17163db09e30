import { hash } from "node:crypto";
import type { FastifyInstance } from "fastify";
import type { z } from "zod";
import { DocumentsQuery } from "../../../wire/documents.ts";
import { MAIL_TYPE } from "../../../wire/constants.ts";
import { OwnersQuery } from "../../../wire/owners.ts";
import { ChunksQuery, ListQuery, ReadQuery } from "../../../wire/resource.ts";
import { ROUTES } from "../../../wire/routes.ts";
import { listDocuments } from "../../resources/documents.ts";
import type { KnowledgeBase } from "../../resources/knowledge-base.ts";
import { listResources, textBytes } from "../../resources/list.ts";
import {
  readAnyResource,
  readChunks,
  readCollections,
  readOwners,
  refuseOtherVersion,
} from "../../resources/read.ts";
import { wholeRecord } from "../../resources/record.ts";
import type { Resource } from "../../store/resources.ts";
import { chunksText, listText } from "../body/list-text.ts";
import { readInput } from "../body/validate.ts";
import { addOperation, answer, idOf } from "../operation/operation.ts";
import type { HttpParts } from "../operation/operation.ts";
import { recordAnswer, streamOf, withReachableUrl } from "./resource-answers.ts";
import { RESOURCE_DOCS } from "./resource-docs.ts";

/** Adds operation 6, and the additions that read resources, chunks, owners and collections. */
export function addResourceReadRoutes(server: FastifyInstance, parts: HttpParts): void {
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
    url: `${ROUTES.resource}/:id`,
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
    url: `${ROUTES.resource}/:id/chunks`,
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
        purges: true,
        locations: true,
      });
    },
  });
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
