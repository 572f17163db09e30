import { hash } from "node:crypto";
import { Readable } from "node:stream";
import type { FastifyRequest } from "fastify";
import { inOrder } from "../../../lib/in-order.ts";
import { BulkLine, BulkOutcome, BulkSummary } from "../../../wire/bulk.ts";
import { ROUTES } from "../../../wire/routes.ts";
import type { RequestContext } from "../../resources/request-context.ts";
import { createResource, queueCreate } from "../../resources/create.ts";
import { invalidField, Refusal } from "../../resources/refusal.ts";
import { asyncPreference } from "../body/conditions.ts";
import { isIdempotencyKey, readStoredAnswer } from "../operation/idempotency.ts";
import type { JsonReader } from "../body/json-reader.ts";
import { isDisconnect } from "../limits/disconnect.ts";
import { linesOf, type Line } from "../body/lines.ts";
import { callerOf, type HttpParts } from "../operation/operation.ts";
import { refusalAnswer } from "../operation/status.ts";
import { workOn } from "../limits/in-flight.ts";
import { readBody } from "../body/validate.ts";
import { type Pace, piecesOf, paced } from "./bulk-body.ts";

/** Largest body: a client whose body never ended would never get the summary. */
export const BODY_BYTES_MAX = 4 * 1024 * 1024 * 1024;
/** Lines in flight: they share transactions, the chunker and the model, which process some at a time. */
const WIDTH = 64;
/** Bytes of a request's lines in flight; a single line may be longer. */
const BYTES_IN_FLIGHT = 16 * 1024 * 1024;
/** Invalid lines after which a bulk create ends: a body of nothing else would cost answers and create nothing. */
const BAD_LINES_MAX = 1000;
/** Invalid lines in a row after which it ends, so that a body that is not NDJSON does not use the event loop for a thousand. */
const BAD_LINES_IN_ROW_MAX = 100;

/** Yields the answer to each line of a bulk create, in order, and at the end the summary. */
export async function* answerLines(
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
      : // Thousands of lines are a backlog, although their client waits.
        {
          ...(await createResource({ ...parts.kb, lane: "backlog" }, { accountId, body, context })),
          status: 201,
        };
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
