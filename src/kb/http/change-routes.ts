import { setTimeout } from "node:timers/promises";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { z } from "zod";
import { codeOf } from "../../lib/failure.ts";
import { openShares } from "../../lib/shares.ts";
import { Refused } from "../../wire/answers.ts";
import { Change, CHANGES_MAX, ChangesAnswer, ChangesQuery, ChangesReady, NOW } from "../../wire/changes.ts";
import { ROUTES } from "../../wire/routes.ts";
import { Refusal } from "../resources/refusal.ts";
import type { ChangesPage, DocumentChange } from "../store/changes.ts";
import { disconnectSignal } from "./disconnect.ts";
import { openEventStream, type EventStream } from "./event-stream.ts";
import { answer, callerOf, requireKey, routeConfig, sendJson } from "./operation.ts";
import type { HttpParts } from "./operation.ts";
import type { RouteDoc } from "./route-table.ts";
import { refusalAnswer } from "./status.ts";
import { readInput } from "./validate.ts";

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

/** Open streams of all accounts. */
const STREAMS_MAX = 256;
/** Time after which a stream looks for changes that other processes made, and checks its key again. */
const POLL_MS = 5000;
/** Least time between two reads of a stream that has read everything: many changes at once cost few reads. */
const PAUSE_MS = 50;

/** Adds the change feed (an addition). */
export function addChangeRoutes(server: FastifyInstance, parts: HttpParts): void {
  const streams = openShares(STREAMS_MAX);
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
      const lastId = isStream ? request.headers["last-event-id"] : undefined;
      const given = typeof lastId === "string" && lastId !== "" ? lastId : query.cursor;
      const cursor = given === NOW ? await parts.kb.records.newestCursor(accountId) : given;
      if (!isStream) {
        const page = await readPage(parts, accountId, cursor, query.limit);
        const data = { ...page, changes: page.changes.map(changeOf) };
        return sendJson(reply, 200, JSON.stringify(answer(200, "Changes fetched successfully", data).body));
      }
      if (!streams.take(accountId, 1))
        throw new Refusal(
          "overloaded",
          `More than ${STREAMS_MAX} streams of changes are open, or this account has its share of them.`,
        );
      try {
        return await stream(parts, cursor, request, reply);
      } finally {
        streams.give(accountId, 1);
      }
    },
  });
}

/** Sends the changes after a cursor, and later ones when they are made, until the client disconnects or the service closes. */
async function stream(
  parts: HttpParts,
  start: string | undefined,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const { accountId } = callerOf(request);
  const signal = disconnectSignal(request, reply);
  // Refused with a status as long as nothing is sent.
  const first = await readPage(parts, accountId, start, CHANGES_MAX);
  const events = openEventStream(reply, parts.answerIdleMs);
  const ready: z.infer<typeof ChangesReady> = { cursor: start ?? null };
  events.send("ready", ready, start);
  // Ends the wait for the next change.
  signal.addEventListener("abort", () => parts.kb.changeWaits.notify(accountId), { once: true });
  try {
    await follow(parts, first, { accountId, request, events, signal });
  } catch (error) {
    if (!signal.aborted) events.send("error", refusalAnswer(error).body);
  }
  events.end();
  return reply;
}

interface Follower {
  readonly accountId: string;
  readonly request: FastifyRequest;
  readonly events: EventStream;
  readonly signal: AbortSignal;
}

async function follow(
  parts: HttpParts,
  first: ChangesPage,
  { accountId, request, events, signal }: Follower,
): Promise<void> {
  const { kb } = parts;
  let checkedMs = kb.steadyMs();
  let page = first;
  for (;;) {
    for (const change of page.changes) events.send("change", changeOf(change), change.cursor);
    await events.drained();
    if (signal.aborted || kb.isEnding()) return;
    if (kb.steadyMs() - checkedMs >= POLL_MS) {
      await checkCaller(parts, request);
      checkedMs = kb.steadyMs();
    }
    // Listens before it reads, so that no change is made in between; not beyond the next check, however many changes are made.
    const listening = kb.changeWaits.listen(accountId, checkedMs + POLL_MS - kb.steadyMs());
    try {
      page = await readPage(parts, accountId, page.cursor, CHANGES_MAX);
      if (page.changes.length > 0) continue;
      await listening.ended;
      await setTimeout(PAUSE_MS);
    } finally {
      listening.stop();
    }
  }
}

/** Throws if the key, or the session, is no longer valid. */
export async function checkCaller(parts: HttpParts, request: FastifyRequest): Promise<void> {
  try {
    await requireKey(parts, "read")(request);
  } catch (error) {
    // An open stream is no further request.
    if (codeOf(error) !== "rate_limited") throw error;
  }
}

/** Throws `cursor_expired`. */
export async function readPage(
  { kb }: HttpParts,
  accountId: string,
  cursor: string | undefined,
  limit: number,
): Promise<ChangesPage> {
  const page = await kb.records.changes({ accountId, cursor, limit });
  if (page !== undefined) return page;
  throw new Refusal(
    "cursor_expired",
    "The changes after this cursor are no longer stored, or it is not known here.",
    {
      field: "cursor",
      hint: `Read the cursor \`${NOW}\`, then list the resources, then continue from that cursor.`,
    },
  );
}

/** Returns a change in the wire format. */
export function changeOf({ kind, resourceId, at, ...change }: DocumentChange): Change {
  return { ...change, type: `document.${kind}`, timestamp: at, _id: resourceId };
}
