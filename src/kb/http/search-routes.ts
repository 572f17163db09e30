import type { FastifyInstance } from "fastify";
import { ROUTES } from "../../wire/routes.ts";
import { FoundAnswer } from "../../wire/answers.ts";
import { SearchBody } from "../../wire/search.ts";
import { queryResources } from "../resources/query.ts";
import { addOperation } from "./operation.ts";
import type { HttpParts } from "./operation.ts";
import { readBody } from "./validate.ts";

/** A query of 8000 characters, all escaped, and the other fields. */
const SEARCH_BODY_BYTES_MAX = 128 * 1024;

/** Adds operation 3. */
export function addSearchRoutes(server: FastifyInstance, parts: HttpParts): void {
  addOperation(server, parts, {
    method: "POST",
    url: ROUTES.query,
    scope: "read",
    doc: {
      summary: "Searches one resource, or one owner's part of a collection.",
      tag: "Search",
      body: SearchBody,
      answers: { 200: FoundAnswer },
    },
    bodyBytesMax: SEARCH_BODY_BYTES_MAX,
    handle: async (request, accountId) => {
      const body = readBody(SearchBody, request.body);
      const { chunks: _, ...found } = await parts.urgent.during(() =>
        queryResources(parts.kb, accountId, body),
      );
      return { status: 200, body: { success: true, ...found } } as const;
    },
  });
}
