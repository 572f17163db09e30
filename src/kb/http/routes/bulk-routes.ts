import type { Socket } from "node:net";
import { Readable } from "node:stream";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { BulkLine, BulkOutcome, BulkSummary } from "../../../wire/bulk.ts";
import { ROUTES } from "../../../wire/routes.ts";
import { Refusal } from "../../resources/refusal.ts";
import type { JsonReader } from "../body/json-reader.ts";
import { openAccountBudget } from "../limits/account-budget.ts";
import { callerOf, requireKey, routeConfig, type HttpParts } from "../operation/operation.ts";
import { BODY_BYTES_MAX, answerLines } from "../streams/bulk-answers.ts";
import { waitForBudget } from "../streams/bulk-body.ts";

const NDJSON = "application/x-ndjson";
/**
 * Invalid lines of all bulk creates of an account: at once, and in the long run. Further lines wait: each costs the event
 * loop 50 µs and creates nothing, so an account that sends nothing else would use half of it.
 */
const UNREADABLE_BURST = 2000;
const UNREADABLE_PER_SECOND = 200;
/**
 * Answer buffered for a client that sends everything before it reads: about 50,000 lines. Above that, no further line is
 * read until the client reads.
 */
const ANSWER_BYTES_MAX = 8 * 1024 * 1024;

const DOC = {
  summary: "Creates many resources in one request, one JSON object per line, and answers each line in order.",
  tag: "Resources",
  body: BulkLine,
  lines: true,
  answers: { 200: BulkOutcome.or(BulkSummary) },
} as const;

/**
 * Adds bulk create (an addition), in a scope of its own: its body is a stream instead of one JSON value. `untimed`: sockets
 * whose request may take longer than others to arrive. Lines are read as fast as documents are ingested, which may take
 * hours.
 */
export async function addBulkRoutes(
  scope: FastifyInstance,
  parts: HttpParts,
  json: JsonReader,
  lineBytesMax: number,
  untimed: WeakSet<Socket>,
): Promise<void> {
  const budget = openAccountBudget({ perSecond: UNREADABLE_PER_SECOND, burst: UNREADABLE_BURST });
  scope.removeAllContentTypeParsers();
  scope.addContentTypeParser([NDJSON, "application/ndjson", "application/jsonl"], (_request, body, done) => {
    done(null, body);
  });
  scope.post(
    ROUTES.bulk,
    {
      onRequest: requireKey(parts, "write"),
      bodyLimit: BODY_BYTES_MAX,
      config: routeConfig("write", DOC, "documents"),
    },
    async (request, reply) => {
      if (request.body === undefined || request.body === null) {
        throw new Refusal("invalid_body", `The body: expected lines of JSON (${NDJSON}), got nothing.`);
      }
      const { accountId } = callerOf(request);
      const withinBudget = (): Promise<void> => waitForBudget(budget, accountId, parts.bulkWaitMs);
      await withinBudget();
      allowTime(parts, request, reply, untimed);
      const spend = (): void => budget.spend(accountId, performance.now());
      const answers = answerLines(parts, json, request, lineBytesMax, {
        slice: parts.urgent,
        withinBudget,
        spend,
      });
      const stream = Readable.from(answers, { objectMode: false, highWaterMark: ANSWER_BYTES_MAX });
      return reply.code(200).header("content-type", NDJSON).send(stream);
    },
  );
}

/**
 * Exempts a request from the request timeout. If its body is incomplete at the end of the answer, for example after a line
 * that never arrived, the rest is discarded for as long as another request may take: closing the socket at once could lose
 * the end of the answer.
 */
function allowTime(
  { requestMs }: HttpParts,
  { raw }: FastifyRequest,
  reply: FastifyReply,
  untimed: WeakSet<Socket>,
): void {
  const { socket } = raw;
  untimed.add(socket);
  reply.raw.once("close", () => untimed.delete(socket));
  reply.raw.once("finish", () => {
    if (raw.complete) return;
    const late = setTimeout(() => socket.destroy(), requestMs).unref();
    raw.once("close", () => clearTimeout(late));
  });
}
