import type { FastifyInstance } from "fastify";
import { ROUTES } from "../../../wire/routes.ts";
import { FoundAnswer } from "../../../wire/answers.ts";
import { SearchBody } from "../../../wire/search.ts";
import { answerQuery } from "../../resources/query.ts";
import { addOperation } from "../operation/operation.ts";
import type { HttpParts } from "../operation/operation.ts";
import { readBody } from "../body/validate.ts";

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
      const { during } = parts.urgent;
      const answered = await answerQuery(parts.kb, accountId, body, during);
      const { chunks: _, ...found } = answered;
      return { status: 200, body: { success: true, ...found } } as const;
    },
  });
}
