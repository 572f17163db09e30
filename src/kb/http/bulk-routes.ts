import { hash } from "node:crypto";
import type { Socket } from "node:net";
import { Readable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { within } from "../../lib/deadline.ts";
import { inOrder } from "../../lib/in-order.ts";
import { openTurnSlice, type TurnSlice } from "../../lib/turn-slice.ts";
import { BulkLine, BulkOutcome, BulkSummary } from "../../wire/bulk.ts";
import { ROUTES } from "../../wire/routes.ts";
import type { RequestContext } from "../resources/request-context.ts";
import { createResource, queueCreate } from "../resources/create.ts";
import { invalidField, Refusal } from "../resources/refusal.ts";
import { asyncPreference } from "./conditions.ts";
import { isIdempotencyKey, readStoredAnswer } from "./idempotency.ts";
import type { JsonReader } from "./json-reader.ts";
import { hasLeft } from "./disconnect.ts";
import { openAccountBudget, type AccountBudget } from "./account-budget.ts";
import { linesOf, type Line } from "./lines.ts";
import { callerOf, requireKey, routeConfig } from "./operation.ts";
import type { HttpParts } from "./operation.ts";
import { refusalAnswer } from "./status.ts";
import { workOn } from "./under-way.ts";
import { readBody } from "./validate.ts";

const NDJSON = "application/x-ndjson";
/** Largest body: one that never ended would never tell its client what became of it as a whole. */
const BODY_BYTES_MAX = 4 * 1024 * 1024 * 1024;
/** Lines under way at once: they share their transactions, and a chunker and a model that take some at a time. */
const WIDTH = 64;
/** Bytes of lines under way of one request; one line is taken however long. */
const BYTES_UNDER_WAY = 16 * 1024 * 1024;
/** Lines that cannot be read before a bulk ends: a body of nothing else would cost its answers and bring nothing. */
const BAD_LINES_MAX = 1000;
/** Of them in a row: a body that is no NDJSON ends before it has taken a turn of the loop from others for each of a thousand. */
const BAD_LINES_IN_ROW_MAX = 100;
/**
 * Unreadable lines of all bulks of an account, at once and in the long run. Further lines wait: each costs the loop 50 µs
 * and brings nothing, so that an account which sends nothing else would take half of it.
 */
const UNREADABLE_BURST = 2000;
const UNREADABLE_PER_SECOND = 200;
/** How long the lines of all bulks are answered before other requests get a turn of the event loop. */
const SLICE_MS = 1;
/**
 * How long they wait for searches that are under way: one needs several turns, and would wait for a slice at each
 * (bench/hostile-account.ts). However many searches come, bulks have a quarter of the loop.
 */
const SEARCHES_FIRST_MS = 3;
/**
 * Answer kept for a client that sends everything before it reads anything: some 50,000 lines. Beyond that no further line
 * is read until it does.
 */
const ANSWER_BYTES_MAX = 8 * 1024 * 1024;

const DOC = {
  summary: "Creates many resources in one request, a JSON object a line; answers each line in order.",
  tag: "Resources",
  body: BulkLine,
  lines: true,
  answers: { 200: BulkOutcome.or(BulkSummary) },
} as const;

/**
 * Bulk create (an addition). In a scope of its own: its body is a stream, not JSON as a whole. `unhurried`: sockets whose
 * request may take longer to arrive than others; lines come as fast as documents are taken in, which may take hours.
 */
export async function addBulkRoutes(
  scope: FastifyInstance,
  parts: HttpParts,
  json: JsonReader,
  lineBytesMax: number,
  unhurried: WeakSet<Socket>,
): Promise<void> {
  const slice = openTurnSlice({
    sliceMs: SLICE_MS,
    isUrgent: parts.urgent.isUnderWay,
    urgentMsMax: SEARCHES_FIRST_MS,
  });
  const budget = openAccountBudget({ perSecond: UNREADABLE_PER_SECOND, burst: UNREADABLE_BURST });
  scope.removeAllContentTypeParsers();
  scope.addContentTypeParser([NDJSON, "application/ndjson", "application/jsonl"], (_request, body, done) => {
    done(null, body);
  });
  scope.post(
    ROUTES.bulk,
    {
      onRequest: requireKey(parts.keyring, "write"),
      bodyLimit: BODY_BYTES_MAX,
      config: routeConfig("write", DOC, "documents"),
    },
    async (request, reply) => {
      if (request.body === undefined || request.body === null) {
        throw new Refusal("invalid_body", `The body: expected lines of JSON (${NDJSON}), got nothing.`);
      }
      takeTime(parts, request, reply, unhurried);
      const answers = answerLines(parts, json, request, lineBytesMax, { slice, budget });
      const stream = Readable.from(answers, { objectMode: false, highWaterMark: ANSWER_BYTES_MAX });
      return reply.code(200).header("content-type", NDJSON).send(stream);
    },
  );
}

/**
 * Gives a request the time it takes. What is left of its body when the answer is over, as after a line that never came, is
 * read away for as long as another request may take; a socket closed at once would take the answer's end with it.
 */
function takeTime(
  { requestMs }: HttpParts,
  { raw }: FastifyRequest,
  reply: FastifyReply,
  unhurried: WeakSet<Socket>,
): void {
  const { socket } = raw;
  unhurried.add(socket);
  reply.raw.once("close", () => unhurried.delete(socket));
  reply.raw.once("finish", () => {
    if (raw.complete) return;
    const late = setTimeout(() => socket.destroy(), requestMs).unref();
    raw.once("close", () => clearTimeout(late));
  });
}

/**
 * The pieces of a body, asked for as lines are taken. Throws `request_timeout` when one is waited for too long, and when the
 * body takes too long as a whole: one that dribbles in, be it a line without end, would hold its place for ever.
 */
async function* piecesOf(
  body: Readable,
  { requestMs: idleMs, bulkMs }: Pick<HttpParts, "requestMs" | "bulkMs">,
): AsyncGenerator<Buffer> {
  const endMs = performance.now() + bulkMs;
  // Destroyed, it would take the connection with it, and the answer.
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
    // Not waited for: it comes after the piece that was asked for last, which may never come.
    void source.return?.().then(
      () => body.resume(),
      () => undefined,
    );
  }
}

function stalled(idleMs: number): Refusal {
  return new Refusal(
    "request_timeout",
    `The body: nothing more of it came for ${Math.round(idleMs / 1000)} s.`,
    {
      hint: "Send the lines that were not answered in another request.",
    },
  );
}

/** What the lines of all bulks share. */
interface Pace {
  readonly slice: TurnSlice;
  readonly budget: AccountBudget;
}

/**
 * The same lines, each begun within the account's budget and within a slice: as many as may be under way at once would
 * begin in one turn.
 */
async function* paced(
  lines: AsyncIterable<Line>,
  accountId: string,
  { slice, budget }: Pace,
): AsyncGenerator<Line> {
  const waitMs = (): number => budget.waitMs(accountId, performance.now());
  for await (const line of lines) {
    // Other bulks of the account may have spent more meanwhile.
    for (let ms = waitMs(); ms > 0; ms = waitMs()) await sleep(ms, undefined, { ref: false });
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
  // Given on as it came, by the parser above.
  const pieces = piecesOf(request.body as Readable, parts);
  const memory = request.underWay ?? undefined;
  const lines = paced(linesOf(pieces, lineBytesMax, BODY_BYTES_MAX, memory), accountId, pace);
  const bounds = {
    width: WIDTH,
    weigh: ({ bytes }: Line) => bytes?.length ?? 0,
    weightMax: BYTES_UNDER_WAY,
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
      if (isUnreadable(answered.outcome)) pace.budget.spend(accountId, performance.now());
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
    // The body broke off or was too long; what was answered until then stands.
    const { message } = refusalAnswer(error).body;
    yield `${JSON.stringify({ summary: { ...count, message } } satisfies BulkSummary)}\n`;
  }
}

/** Whether a line is none that this operation takes, whatever the state of the service. */
function isUnreadable(outcome: BulkOutcome): boolean {
  return !outcome.success && (outcome.status === 400 || outcome.status === 413);
}

function tooManyBadLines(which: string): Refusal {
  return new Refusal("invalid_body", `The body: ${which} are not what this operation takes.`, {
    hint: "Mend the lines that were answered with 400 or 413, and send them and the rest in another request.",
  });
}

function tooLong(bulkMs: number): Refusal {
  return new Refusal("request_timeout", `The body took longer than ${bulkMs / 3_600_000} hours.`, {
    hint: "Send the lines that were not answered in another request.",
  });
}

/** What a line is answered, and whether that came from the note of an earlier one. */
interface Answered {
  readonly isRepeated: boolean;
  readonly outcome: BulkOutcome;
}

/** What comes of a line; never rejects. */
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
    if (status === 500 && !hasLeft(error)) log.error({ err: error, line }, "a line of a bulk create failed");
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
  const { value, sha256 } = await json.parseHashed(bytes);
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

/** A create under a key, as a request of its own has it; a repeated line is answered from the note of the first. */
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
      const kept = readStoredAnswer(noted);
      const resource =
        kept.kind === "resource"
          ? kept.resource
          : kept.kind === "reference"
            ? await kb.store.resource({ accountId, id: kept.resourceId })
            : undefined;
      if (resource === undefined) throw new Refusal("resource_not_found", "The resource was deleted since.");
      return { ...resource, status: noted.status, isRepeated: true };
    },
  );
}
