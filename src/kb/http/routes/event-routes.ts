import type { FastifyInstance } from "fastify";
import { Refused } from "../../../wire/answers.ts";
import { AccountEvents, type AccountState } from "../../../wire/events.ts";
import { ROUTES } from "../../../wire/routes.ts";
import { readCollections } from "../../resources/read.ts";
import { lastEventId, openChangeStreams } from "../streams/change-stream.ts";
import type { EventStream } from "../streams/event-stream.ts";
import { callerOf, requireKey, routeConfig } from "../operation/operation.ts";
import type { HttpParts } from "../operation/operation.ts";
import type { RouteDoc } from "../operation/route-table.ts";

const DOC = {
  summary: "Follows the account as server-sent events: its numbers, and every change of a document.",
  tag: "Service",
  headers: { "last-event-id": "The id of the last event received. Default: changes from now on." },
  events: { ...AccountEvents, error: Refused },
  answers: { 200: "empty" },
} satisfies RouteDoc;

/** The numbers of queues change without a change of a document. */
const POLL_MS = 2000;
/** Reading the numbers costs more than reading changes. */
const PAUSE_MS = 250;

/** Adds the events of the account (an addition). `queuesOf` reads what `GET /v1/queues` returns. */
export function addEventRoutes(
  server: FastifyInstance,
  parts: HttpParts,
  queuesOf: (accountId: string) => Promise<AccountState["queues"]>,
): void {
  const { kb } = parts;
  const follow = openChangeStreams(parts, { subject: "events", pollMs: POLL_MS, pauseMs: PAUSE_MS });
  server.route({
    method: "GET",
    url: ROUTES.events,
    // The head is sent with the first event, which an answer to HEAD does not have.
    exposeHeadRoute: false,
    onRequest: requireKey(parts, "read"),
    config: routeConfig("read", DOC),
    handler: async (request, reply) => {
      const { accountId } = callerOf(request);
      const cursor = lastEventId(request) ?? (await kb.records.newestCursor(accountId));
      const caughtUp = stateSender(async () => ({
        collections: [...(await readCollections(kb, accountId))],
        queues: await queuesOf(accountId),
      }));
      return follow(request, reply, cursor, { caughtUp });
    },
  });
}

/** Returns a function that sends the state if it differs from the one sent last. */
function stateSender(read: () => Promise<AccountState>): (events: EventStream) => Promise<void> {
  let sent = "";
  return async (events) => {
    const state = await read();
    const text = JSON.stringify(state);
    if (text === sent) return;
    sent = text;
    events.send("state", state);
  };
}
