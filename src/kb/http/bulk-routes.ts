import { hash } from "node:crypto";
import type { Socket } from "node:net";
import { Readable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { within } from "../../lib/deadline.ts";
import { inOrder } from "../../lib/in-order.ts";
import type { TurnSlice } from "../../lib/turn-slice.ts";
import { BulkLine, BulkOutcome, BulkSummary } from "../../wire/bulk.ts";
import { ROUTES } from "../../wire/routes.ts";
import type { RequestContext } from "../resources/request-context.ts";
import { createResource, queueCreate } from "../resources/create.ts";
import { invalidField, Refusal } from "../resources/refusal.ts";
import { asyncPreference } from "./conditions.ts";
import { isIdempotencyKey, readStoredAnswer } from "./idempotency.ts";
import type { JsonReader } from "./json-reader.ts";
import { isDisconnect } from "./disconnect.ts";
import { openAccountBudget, type AccountBudget } from "./account-budget.ts";
import { linesOf, type Line } from "./lines.ts";
import { callerOf, requireKey, routeConfig } from "./operation.ts";
import type { HttpParts } from "./operation.ts";
import { refusalAnswer } from "./status.ts";
import { workOn } from "./in-flight.ts";
import { readBody } from "./validate.ts";

const NDJSON = "application/x-ndjson";
/** Largest body: a client whose body never ended would never get the summary. */
const BODY_BYTES_MAX = 4 * 1024 * 1024 * 1024;
/** Lines in flight: they share transactions, the chunker and the model, which process some at a time. */
const WIDTH = 64;
/** Bytes of a request's lines in flight; a single line may be longer. */
const BYTES_IN_FLIGHT = 16 * 1024 * 1024;
/** Invalid lines after which a bulk create ends: a body of nothing else would cost answers and create nothing. */
const BAD_LINES_MAX = 1000;
/** Invalid lines in a row after which it ends, so that a body that is not NDJSON does not use the event loop for a thousand. */
const BAD_LINES_IN_ROW_MAX = 100;
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

/**
 * Yields the pieces of a body as lines are consumed. Throws `request_timeout` if a piece or the whole body takes too long: a
 * body that trickles in, such as a line without end, would hold its slot for ever.
 */
async function* piecesOf(
  body: Readable,
  { requestMs: idleMs, bulkMs }: Pick<HttpParts, "requestMs" | "bulkMs">,
): AsyncGenerator<Buffer> {
  const endMs = performance.now() + bulkMs;
  // Destroying the body would close the connection and lose the answer.
  const source: AsyncIterator<Buffer> = body.iterator({ destroyOnReturn: false });
  try {
    for (;;) {
      const leftMs = endMs - performance.now();
      if (leftMs <= 0) throw tooLong(bulkMs);
      const late = (): Refusal => (leftMs < idleMs ? tooLong(bulkMs) : stalled(idleMs));
      const read = await within(source.next(), Math.min(idleMs, leftMs), late);
      if (read.done === true) return;
      yield read.value;
    }
  } finally {
    // Not awaited: it resolves after the piece requested last, which may never arrive.
    void source.return?.().then(
      () => body.resume(),
      () => undefined,
    );
  }
}

function stalled(idleMs: number): Refusal {
  return new Refusal(
    "request_timeout",
    `The body: no more of it arrived for ${Math.round(idleMs / 1000)} s.`,
    {
      hint: "Send the lines that were not answered in another request.",
    },
  );
}

/**
 * Waits until an account is within its budget. Throws `rate_limited` if that takes longer than `waitMsMax`: the account's other
 * bulk creates may use up the budget again and again for minutes.
 */
async function waitForBudget(budget: AccountBudget, accountId: string, waitMsMax: number): Promise<void> {
  const waitMs = (): number => budget.waitMs(accountId, performance.now());
  const endMs = performance.now() + waitMsMax;
  for (let ms = waitMs(); ms > 0; ms = waitMs()) {
    if (performance.now() + ms > endMs) throw overBudget(Math.ceil(ms / 1000));
    await sleep(ms, undefined, { ref: false });
  }
}

function overBudget(retryAfterSeconds: number): Refusal {
  return new Refusal(
    "rate_limited",
    `The account has sent too many invalid lines to bulk creates. Send the lines that were not answered in ${retryAfterSeconds} s.`,
    {
      retryAfterSeconds,
      hint: "Correct the lines that were answered with 400 or 413 first: each counts again.",
    },
  );
}

/** What keeps the lines of bulk creates from taking too much of the event loop. */
interface Pace {
  /** Shared by all bulk creates. */
  readonly slice: TurnSlice;
  /** Waits until the account may send another line; see `waitForBudget`. */
  readonly withinBudget: (this: void) => Promise<void>;
  /** Counts an invalid line of the account. */
  readonly spend: (this: void) => void;
}

/**
 * Yields the same lines, each within the account's budget and within a slice; otherwise up to WIDTH lines would start in
 * one turn of the event loop.
 */
async function* paced(
  lines: AsyncIterable<Line>,
  { slice, withinBudget }: Pick<Pace, "slice" | "withinBudget">,
): AsyncGenerator<Line> {
  for await (const line of lines) {
    await withinBudget();
    await slice.pause();
    yield line;
  }
}

async function* answerLines(
  parts: HttpParts,
  json: JsonReader,
  request: FastifyRequest,
  lineBytesMax: number,
  pace: Pace,
): AsyncGenerator<string> {
  const { accountId } = callerOf(request);
  const isAsync = asyncPreference(request.headers) !== undefined;
  // The content type parser passes the stream through.
  const pieces = piecesOf(request.body as Readable, parts);
  const memory = request.inFlight ?? undefined;
  const lines = paced(linesOf(pieces, lineBytesMax, BODY_BYTES_MAX, memory), pace);
  const bounds = {
    width: WIDTH,
    weigh: ({ bytes }: Line) => bytes?.length ?? 0,
    weightMax: BYTES_IN_FLIGHT,
  };
  const count = { lines: 0, created: 0, repeated: 0, failed: 0 };
  let badLines = 0;
  let badInRow = 0;
  const text = ({ isRepeated, outcome }: Answered): string => {
    count.lines += 1;
    if (isRepeated) count.repeated += 1;
    else if (outcome.success) count.created += 1;
    else count.failed += 1;
    return `${JSON.stringify(outcome)}\n`;
  };
  try {
    const outcomes = inOrder(lines, bounds, async (line) => {
      const bytes = line.bytes?.length ?? 0; // read first: a long line is moved to another thread
      const answered = await outcomeOf(parts, line, () =>
        workOn(request, () => createLine(parts, json, accountId, line, lineBytesMax, isAsync)),
      );
      memory?.release(bytes);
      // Here, not where it is answered: a client that has left is not answered.
      if (isUnreadable(answered.outcome)) pace.spend();
      return answered;
    });
    for await (const answered of outcomes) {
      yield text(answered);
      if (isUnreadable(answered.outcome)) {
        badLines += 1;
        badInRow += 1;
      } else badInRow = 0;
      if (badLines >= BAD_LINES_MAX) throw tooManyBadLines(`${BAD_LINES_MAX} of its lines`);
      if (badInRow >= BAD_LINES_IN_ROW_MAX)
        throw tooManyBadLines(`${BAD_LINES_IN_ROW_MAX} of its lines in a row`);
      await pace.slice.pause();
    }
    yield `${JSON.stringify({ summary: count } satisfies BulkSummary)}\n`;
  } catch (error) {
    // The body was interrupted or too long; the lines answered so far are done.
    const { message } = refusalAnswer(error).body;
    yield `${JSON.stringify({ summary: { ...count, message } } satisfies BulkSummary)}\n`;
  }
}

/** Whether a line is invalid, regardless of the state of the service. */
function isUnreadable(outcome: BulkOutcome): boolean {
  return !outcome.success && (outcome.status === 400 || outcome.status === 413);
}

function tooManyBadLines(which: string): Refusal {
  return new Refusal("invalid_body", `The body: ${which} are invalid for this operation.`, {
    hint: "Correct the lines that were answered with 400 or 413, and send them and the rest in another request.",
  });
}

function tooLong(bulkMs: number): Refusal {
  return new Refusal("request_timeout", `The body took longer than ${bulkMs / 3_600_000} hours.`, {
    hint: "Send the lines that were not answered in another request.",
  });
}

/** The answer to a line, and whether it comes from the note of an earlier line. */
interface Answered {
  readonly isRepeated: boolean;
  readonly outcome: BulkOutcome;
}

/** Returns the outcome of a line. Never rejects. */
async function outcomeOf(
  { log }: HttpParts,
  { number: line }: Line,
  create: () => Promise<Made>,
): Promise<Answered> {
  try {
    const { status, isRepeated = false, id: _id, collectionId, ownerId } = await create();
    return { isRepeated, outcome: { line, success: true, status, data: { _id, collectionId, ownerId } } };
  } catch (error) {
    const { status, body } = refusalAnswer(error);
    if (status === 500 && !isDisconnect(error))
      log.error({ err: error, line }, "a line of a bulk create failed");
    return { isRepeated: false, outcome: { line, status, ...body } };
  }
}

async function createLine(
  parts: HttpParts,
  json: JsonReader,
  accountId: string,
  { bytes }: Line,
  lineBytesMax: number,
  isAsync: boolean,
): Promise<Made> {
  if (bytes === undefined) {
    throw new Refusal("body_too_large", `The line: expected at most ${lineBytesMax} bytes.`);
  }
  const { value, sha256 } = await json.parseHashed(bytes, accountId);
  const { idempotency_key: key, ...body } = readBody(BulkLine, value);
  const create = async (context: RequestContext): Promise<Made> =>
    isAsync
      ? { ...(await queueCreate(parts.kb, { accountId, body, context })), status: 202 }
      : { ...(await createResource(parts.kb, { accountId, body, context })), status: 201 };
  return key === undefined ? create({}) : once(parts, accountId, key, sha256, create);
}

interface Made {
  readonly status: number;
  readonly isRepeated?: boolean;
  readonly id: string;
  readonly collectionId: string;
  readonly ownerId: string;
}

/** Creates a resource under an idempotency key, as a single create does. Answers a repeated line from the note of the first. */
async function once(
  { idempotency, kb }: HttpParts,
  accountId: string,
  key: string,
  lineSha256: string,
  create: (context: RequestContext) => Promise<Made>,
): Promise<Made> {
  if (!isIdempotencyKey(key)) {
    throw invalidField("idempotency_key", "expected 1 to 255 printable ASCII characters");
  }
  const sha256 = hash("sha256", `${ROUTES.bulk} ${lineSha256}`, "hex");
  return idempotency.once(
    { accountId, key, sha256 },
    () => create({ request: { key, bodySha256: sha256 } }),
    async (noted) => {
      const note = readStoredAnswer(noted);
      const resource =
        note.kind === "resource"
          ? note.resource
          : note.kind === "reference"
            ? await kb.records.resource({ accountId, id: note.resourceId })
            : undefined;
      if (resource === undefined) throw new Refusal("resource_not_found", "The resource has been deleted.");
      return { ...resource, status: noted.status, isRepeated: true };
    },
  );
}
