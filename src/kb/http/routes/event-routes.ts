import { setTimeout } from "node:timers/promises";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { codeOf } from "../../../lib/failure.ts";
import { openShares } from "../../../lib/shares.ts";
import { Refused } from "../../../wire/answers.ts";
import { AccountState } from "../../../wire/events.ts";
import { ROUTES } from "../../../wire/routes.ts";
import type { QuestionFigures } from "../../chat/job-runner.ts";
import { readCollections } from "../../resources/read.ts";
import { Refusal } from "../../resources/refusal.ts";
import { disconnectSignal } from "../limits/disconnect.ts";
import { callerOf, requireKey, routeConfig } from "../operation/operation.ts";
import type { HttpParts } from "../operation/operation.ts";
import type { RouteDoc } from "../operation/route-table.ts";
import { refusalAnswer } from "../operation/status.ts";
import { openEventStream } from "../streams/event-stream.ts";

const DOC = {
  summary: "Follows the account as server-sent events: its numbers, again after every change of a document.",
  tag: "Service",
  events: { state: AccountState, error: Refused },
  answers: { 200: "empty" },
} satisfies RouteDoc;

/** Open streams of all accounts. */
const STREAMS_MAX = 256;
/** The numbers of queues change without a change of a document. A stream also checks its key again after this time. */
const POLL_MS = 2000;
/** Least time between two reads of the numbers: many changes at once cost few reads. */
const PAUSE_MS = 250;

/** Adds the events of the account (an addition). `questionsOf` reads the questions that wait. */
export function addEventRoutes(
  server: FastifyInstance,
  parts: HttpParts,
  questionsOf: (accountId: string) => Promise<QuestionFigures>,
): void {
  const open = openShares(STREAMS_MAX);
  server.route({
    method: "GET",
    url: ROUTES.events,
    // The head is sent with the first event, which an answer to HEAD does not have.
    exposeHeadRoute: false,
    onRequest: requireKey(parts, "read"),
    config: routeConfig("read", DOC),
    handler: async (request, reply) => {
      const { accountId } = callerOf(request);
      if (!open.take(accountId, 1))
        throw new Refusal(
          "overloaded",
          `More than ${STREAMS_MAX} streams of events are open, or this account has its share of them.`,
        );
      try {
        const read = async (): Promise<AccountState> => ({
          collections: [...(await readCollections(parts.kb, accountId))],
          queues: await readQueues(parts.kb, accountId, questionsOf),
        });
        return await follow(parts, request, reply, read);
      } finally {
        open.give(accountId, 1);
      }
    },
  });
}

/** Reads the figures of an account's queues. */
async function readQueues(
  { queue, records }: HttpParts["kb"],
  accountId: string,
  questionsOf: (accountId: string) => Promise<QuestionFigures>,
): Promise<AccountState["queues"]> {
  const [documents, failed, messages, endpoints, questions] = await Promise.all([
    queue.figures("ingest", accountId),
    records.failedResources(accountId),
    queue.figures("webhook", accountId),
    records.endpoints(accountId),
    questionsOf(accountId),
  ]);
  return {
    ingest: queueOf({ ...documents, failed }),
    webhooks: { endpoints: endpoints.length, waiting: messages.waiting, failed: messages.failed },
    questions: queueOf(questions),
  };
}

function queueOf({ waiting, oldestMs, failed }: Pick<QuestionFigures, "waiting" | "oldestMs" | "failed">) {
  return { waiting, oldestAt: oldestMs === null ? null : new Date(oldestMs).toISOString(), failed };
}

/** Sends the state at first, after every change, and whenever it differs, until the client disconnects or the service closes. */
async function follow(
  parts: HttpParts,
  request: FastifyRequest,
  reply: FastifyReply,
  read: () => Promise<AccountState>,
): Promise<FastifyReply> {
  const { kb, urgent } = parts;
  const { accountId } = callerOf(request);
  const signal = disconnectSignal(request, reply);
  // Refused with a status as long as nothing is sent.
  let state = await read();
  const events = openEventStream(reply, parts.answerIdleMs);
  // Ends the wait for the next change.
  signal.addEventListener("abort", () => kb.changeWaits.notify(accountId), { once: true });
  let sent = "";
  let isChanged = true;
  try {
    while (!signal.aborted && !kb.isEnding()) {
      // Listens before the pause and the next read, so that no change is missed in between.
      const dueMs = kb.steadyMs() + POLL_MS;
      const listening = kb.changeWaits.listen(accountId, POLL_MS);
      try {
        const text = JSON.stringify(state);
        if (isChanged || text !== sent) events.send("state", state);
        sent = text;
        await events.drained();
        await Promise.all([listening.ended, setTimeout(PAUSE_MS)]);
      } finally {
        listening.stop();
      }
      isChanged = kb.steadyMs() < dueMs;
      await checkCaller(parts, request);
      await urgent.pause();
      state = await read();
    }
  } catch (error) {
    if (!signal.aborted) events.send("error", refusalAnswer(error).body);
  }
  events.end();
  return reply;
}

/** Throws if the key, or the session, is no longer valid. */
async function checkCaller(parts: HttpParts, request: FastifyRequest): Promise<void> {
  try {
    await requireKey(parts, "read")(request);
  } catch (error) {
    // An open stream is no further request.
    if (codeOf(error) !== "rate_limited") throw error;
  }
}
