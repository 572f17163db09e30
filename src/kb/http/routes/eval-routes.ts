import type { FastifyInstance } from "fastify";
import { openGate } from "../../../lib/gate.ts";
import { EvalAnswer, EvalBody, StarterAnswer, StarterQuery } from "../../../wire/evaluation.ts";
import { ROUTES } from "../../../wire/routes.ts";
import { evaluate } from "../../resources/evaluate.ts";
import { makeStarter } from "../../resources/starter.ts";
import { Refusal } from "../../resources/refusal.ts";
import { addOperation, answer, callerOf } from "../operation/operation.ts";
import type { HttpParts } from "../operation/operation.ts";
import { readBody, readInput } from "../body/validate.ts";

/** Two hundred questions of 100 expected paths, of usual lengths. */
const EVAL_BODY_BYTES_MAX = 1024 * 1024;
/** Searches of evaluations at a time. The accounts that evaluate take turns, and each runs one evaluation. */
const SEARCHES_MAX = 4;
/** Accounts whose searches may wait. */
const ACCOUNTS_MAX = 10_000;
/** Time after which a refused evaluation may be repeated. */
const RETRY_SECONDS = 10;
const RUNNING = "An evaluation of this account is running.";

/** Adds the evaluation of searches, and questions to begin with (additions). */
export function addEvalRoutes(server: FastifyInstance, parts: HttpParts): void {
  const running = new Set<string>();
  const gate = openGate({
    width: SEARCHES_MAX,
    lineMax: ACCOUNTS_MAX,
    full: () => overloaded("More evaluations are running than the service takes."),
  });
  addOperation(server, parts, {
    method: "POST",
    url: ROUTES.evaluate,
    scope: "read",
    doc: {
      summary: "Measures how well searches find the documents that are known to answer questions.",
      tag: "Search",
      body: EvalBody,
      answers: { 200: EvalAnswer },
    },
    bodyBytesMax: EVAL_BODY_BYTES_MAX,
    handle: async (request, accountId, _context, _share, disconnected) => {
      const body = readBody(EvalBody, request.body);
      if (running.has(accountId)) throw overloaded(RUNNING);
      const { sha256 } = callerOf(request);
      const signal = disconnected();
      running.add(accountId);
      try {
        const report = await evaluate(parts.kb, accountId, body, {
          signal,
          take: async () => void (await parts.keyring.checkHash(sha256, "read")),
          during: (search) => gate.run(() => parts.urgent.during(search), { path: [accountId], signal }),
          nowMs: () => performance.now(),
        });
        return answer(200, "Searches evaluated successfully", report);
      } finally {
        running.delete(accountId);
      }
    },
  });
  addOperation(server, parts, {
    method: "GET",
    url: ROUTES.starter,
    scope: "read",
    doc: {
      summary: "Makes questions for an evaluation from the headings of an owner's documents in a collection.",
      tag: "Search",
      query: StarterQuery,
      answers: { 200: StarterAnswer },
    },
    handle: async (request, accountId, _context, _share, disconnected) => {
      const signal = disconnected();
      const turn = async (): Promise<void> => {
        signal.throwIfAborted();
        await parts.urgent.pause();
      };
      const query = readInput(StarterQuery, request.query);
      if (running.has(accountId)) throw overloaded(RUNNING);
      running.add(accountId);
      try {
        const read = async () => makeStarter(parts.kb, accountId, query, turn);
        const starter = await gate.run(read, { path: [accountId], signal });
        return answer(200, "Questions made successfully", starter);
      } finally {
        running.delete(accountId);
      }
    },
  });
}

function overloaded(message: string): Refusal {
  return new Refusal("overloaded", message, { retryAfterSeconds: RETRY_SECONDS });
}
