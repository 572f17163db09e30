import { setTimeout } from "node:timers/promises";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { openShares } from "../../lib/shares.ts";
import { Refused } from "../../wire/answers.ts";
import { CHANGES_MAX } from "../../wire/changes.ts";
import { AccountEvents, type AccountState } from "../../wire/events.ts";
import { ROUTES } from "../../wire/routes.ts";
import { readCollections } from "../resources/read.ts";
import { Refusal } from "../resources/refusal.ts";
import { changeOf, checkCaller, readPage } from "./change-routes.ts";
import { disconnectSignal } from "./disconnect.ts";
import { openEventStream, type EventStream } from "./event-stream.ts";
import { callerOf, requireKey, routeConfig } from "./operation.ts";
import type { HttpParts } from "./operation.ts";
import type { RouteDoc } from "./route-table.ts";
import { refusalAnswer } from "./status.ts";

const DOC = {
  summary: "Follows the account as server-sent events: its numbers, and every change of a document.",
  tag: "Service",
  headers: { "last-event-id": "The id of the last event received. Default: changes from now on." },
  events: { ...AccountEvents, error: Refused },
  answers: { 200: "empty" },
} satisfies RouteDoc;

/** Open streams of all accounts. */
const STREAMS_MAX = 256;
/** Time between two looks at the numbers: those of queues change without a change of a document. The key is checked again too. */
const LOOK_MS = 2000;
/** Least time between two looks: many changes at once cost few reads. */
const PAUSE_MS = 250;

/** Adds the events of the account (an addition). `queuesOf` reads what `GET /v1/queues` returns. */
export function addEventRoutes(
  server: FastifyInstance,
  parts: HttpParts,
  queuesOf: (accountId: string) => Promise<AccountState["queues"]>,
): void {
  const streams = openShares(STREAMS_MAX);
  server.route({
    method: "GET",
    url: ROUTES.events,
    // The head is sent with the first event, which an answer to HEAD does not have.
    exposeHeadRoute: false,
    onRequest: requireKey(parts, "read"),
    config: routeConfig("read", DOC),
    handler: async (request, reply) => {
      const { accountId } = callerOf(request);
      if (!streams.take(accountId, 1))
        throw new Refusal(
          "overloaded",
          `More than ${STREAMS_MAX} streams of events are open, or this account has its share of them.`,
        );
      try {
        return await stream(parts, request, reply, queuesOf);
      } finally {
        streams.give(accountId, 1);
      }
    },
  });
}

async function stream(
  parts: HttpParts,
  request: FastifyRequest,
  reply: FastifyReply,
  queuesOf: (accountId: string) => Promise<AccountState["queues"]>,
): Promise<FastifyReply> {
  const { kb } = parts;
  const { accountId } = callerOf(request);
  const signal = disconnectSignal(request, reply);
  const lastId = request.headers["last-event-id"];
  const start =
    typeof lastId === "string" && lastId !== "" ? lastId : await kb.records.newestCursor(accountId);
  // Refused with a status as long as nothing is sent.
  let page = await readPage(parts, accountId, start, CHANGES_MAX);
  const events = openEventStream(reply, parts.answerIdleMs);
  // Ends the wait for the next change.
  signal.addEventListener("abort", () => kb.changeWaits.notify(accountId), { once: true });
  const sendState = stateSender(events, async () => ({
    collections: [...(await readCollections(kb, accountId))],
    queues: await queuesOf(accountId),
  }));
  try {
    while (!signal.aborted && !kb.isEnding()) {
      for (const change of page.changes) events.send("change", changeOf(change), change.cursor);
      await sendState();
      await events.drained();
      await setTimeout(PAUSE_MS);
      // Listens before it reads, so that no change is made in between.
      const listening = kb.changeWaits.listen(accountId, LOOK_MS);
      try {
        page = await readPage(parts, accountId, page.cursor, CHANGES_MAX);
        if (page.changes.length > 0 || signal.aborted) continue;
        await listening.ended;
      } finally {
        listening.stop();
      }
      await checkCaller(parts, request);
    }
  } catch (error) {
    if (!signal.aborted) events.send("error", refusalAnswer(error).body);
  }
  events.end();
  return reply;
}

/** Returns a function that sends the state if it differs from the one sent last. */
function stateSender(events: EventStream, read: () => Promise<AccountState>): () => Promise<void> {
  let sent = "";
  return async () => {
    const state = await read();
    const text = JSON.stringify(state);
    if (text === sent) return;
    sent = text;
    events.send("state", state);
  };
}
