import type { FastifyInstance } from "fastify";
import { EvalAnswer, EvalBody } from "../../../wire/evaluation.ts";
import { ROUTES } from "../../../wire/routes.ts";
import { evaluate } from "../../resources/evaluate.ts";
import { Refusal } from "../../resources/refusal.ts";
import { addOperation, answer, callerOf } from "../operation/operation.ts";
import type { HttpParts } from "../operation/operation.ts";
import { readBody } from "../body/validate.ts";

/** Two hundred questions of 100 expected paths, of usual lengths. */
const EVAL_BODY_BYTES_MAX = 1024 * 1024;
/** Evaluations at a time, of all accounts; each account has one. */
const EVALS_MAX = 4;
/** Time after which a refused evaluation may be repeated. */
const RETRY_SECONDS = 10;

/** Adds the evaluation of searches (an addition). */
export function addEvalRoutes(server: FastifyInstance, parts: HttpParts): void {
  const running = new Set<string>();
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
      if (running.has(accountId) || running.size >= EVALS_MAX) {
        const whose = running.has(accountId) ? "of this account" : "of other accounts";
        throw new Refusal("overloaded", `An evaluation ${whose} is running.`, {
          retryAfterSeconds: RETRY_SECONDS,
        });
      }
      const { sha256 } = callerOf(request);
      running.add(accountId);
      try {
        const report = await evaluate(parts.kb, accountId, body, {
          signal: disconnected(),
          take: async () => void (await parts.keyring.checkHash(sha256, "read")),
          during: parts.urgent.during,
          nowMs: () => performance.now(),
        });
        return answer(200, "Searches evaluated successfully", report);
      } finally {
        running.delete(accountId);
      }
    },
  });
}
