import type { FastifyInstance } from "fastify";
import { ROUTES } from "../../../wire/routes.ts";
import { FoundAnswer } from "../../../wire/answers.ts";
import { FacetsAnswer, FacetsQuery } from "../../../wire/facets.ts";
import { SearchBody } from "../../../wire/search.ts";
import { readFacets } from "../../resources/facets.ts";
import { queryWithReceipt } from "../../resources/query.ts";
import { addEvalRoutes } from "./eval-routes.ts";
import { addOperation, answer } from "../operation/operation.ts";
import type { HttpParts } from "../operation/operation.ts";
import { readBody, readInput } from "../body/validate.ts";

/** A query of 8000 characters, all escaped, and the other fields. */
const SEARCH_BODY_BYTES_MAX = 128 * 1024;

/** Adds operation 3, and the additions that list what its filters can name and measure what it finds. */
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
    handle: async (request, accountId, _context, _share, disconnected) => {
      const body = readBody(SearchBody, request.body);
      const { during } = parts.urgent;
      const answered = await queryWithReceipt(parts.kb, accountId, body, disconnected(), during);
      const { chunks: _, bases: _bases, passages: _passages, ...found } = answered;
      return { status: 200, body: { success: true, ...found } } as const;
    },
  });
  addOperation(server, parts, {
    method: "GET",
    url: ROUTES.facets,
    scope: "read",
    doc: {
      summary:
        "Lists the metadata of one owner's resources of a collection, with the values and how many have each.",
      tag: "Search",
      query: FacetsQuery,
      answers: { 200: FacetsAnswer },
    },
    handle: async (request, accountId) => {
      const facets = await readFacets(parts.kb, accountId, readInput(FacetsQuery, request.query));
      return answer(200, "Facets fetched successfully", facets);
    },
  });
  addEvalRoutes(server, parts);
}
