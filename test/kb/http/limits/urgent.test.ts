import { expect, it } from "vitest";
import Fastify from "fastify";
import { openResponseMemory } from "../../../../src/kb/http/limits/response-memory.ts";
import type { HttpParts } from "../../../../src/kb/http/operation/operation.ts";
import { addSearchRoutes } from "../../../../src/kb/http/routes/search-routes.ts";

it("counts a search as urgent work", async () => {
  const seen: string[] = [];
  const server = Fastify();
  server.decorateRequest("caller", null);
  addSearchRoutes(server, {
    keyring: { check: () => ({ accountId: "a" }) },
    responseMemory: openResponseMemory(1000),
    urgent: {
      during: async () => {
        seen.push("during");
        return { text: "", results: [] };
      },
    },
    kb: {
      records: { tierOf: async () => "fastest" },
      pending: async () => ({ read: 0, embed: 0 }),
    },
    // The other parts are missing, because a search needs none of them outside `during`.
  } as unknown as HttpParts);
  const payload = { doc_id: "0123456789abcdef01234567", query: "words" };
  const answer = await server.inject({ method: "POST", url: "/rag/query", payload });
  expect([answer.statusCode, seen]).toEqual([200, ["during"]]);
});
