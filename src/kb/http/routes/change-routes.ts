import type { FastifyInstance } from "fastify";
import type { z } from "zod";
import { Refused } from "../../../wire/answers.ts";
import { Change, ChangesAnswer, ChangesQuery, ChangesReady, NOW } from "../../../wire/changes.ts";
import { ROUTES } from "../../../wire/routes.ts";
import { changeOf, lastEventId, openChangeStreams, readPage } from "../streams/change-stream.ts";
import { answer, callerOf, requireKey, routeConfig, sendJson } from "../operation/operation.ts";
import type { HttpParts } from "../operation/operation.ts";
import type { RouteDoc } from "../operation/route-table.ts";
import { readInput } from "../body/validate.ts";

const DOC = {
  summary: "Lists changes of the account's documents in their order; as server-sent events, follows them.",
  tag: "Resources",
  query: ChangesQuery,
  headers: {
    accept: "text/event-stream: the answer is a stream of changes, which also has those that are made later.",
    "last-event-id": "Of a stream: the id of the last event received.",
  },
  events: { ready: ChangesReady, change: Change, error: Refused },
  answers: { 200: ChangesAnswer },
} satisfies RouteDoc;

const POLL_MS = 5000;
const PAUSE_MS = 50;

/** Adds the change feed (an addition). */
export function addChangeRoutes(server: FastifyInstance, parts: HttpParts): void {
  const follow = openChangeStreams(parts, { subject: "changes", pollMs: POLL_MS, pauseMs: PAUSE_MS });
  server.route({
    method: "GET",
    url: ROUTES.changes,
    onRequest: requireKey(parts, "read"),
    config: routeConfig("read", DOC),
    handler: async (request, reply) => {
      const { accountId } = callerOf(request);
      const query = readInput(ChangesQuery, request.query);
      // A stream to HEAD would send nothing and never end.
      const isStream =
        request.method === "GET" && request.headers.accept?.includes("text/event-stream") === true;
      const given = (isStream ? lastEventId(request) : undefined) ?? query.cursor;
      const cursor = given === NOW ? await parts.kb.records.newestCursor(accountId) : given;
      if (isStream) {
        const ready: z.infer<typeof ChangesReady> = { cursor: cursor ?? null };
        return follow(request, reply, cursor, { start: (events) => events.send("ready", ready, cursor) });
      }
      const page = await readPage(parts, accountId, cursor, query.limit);
      const data = { ...page, changes: page.changes.map(changeOf) };
      return sendJson(reply, 200, JSON.stringify(answer(200, "Changes fetched successfully", data).body));
    },
  });
}
