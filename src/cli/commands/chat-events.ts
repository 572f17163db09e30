import type { Dispatcher } from "undici";
import { z } from "zod";
import { KbsyncError, messageOf } from "../../lib/failure.ts";
import { readText } from "../../lib/read-text.ts";
import { ChatAnswer, type ChatResponse } from "../../wire/chat.ts";
import { Failure } from "../../wire/failure.ts";

const Delta = z.object({ content: z.string() });

/** Longest event in characters: a whole answer with its annotations. */
const EVENT_CHARS_MAX = 16 * 1024 * 1024;
/** Longest answer that arrives in one piece. */
const ANSWER_BYTES_MAX = 4 * EVENT_CHARS_MAX;

/**
 * Reads the answer to a question: a stream of pieces, or one piece from a service without streams. `show` receives each piece.
 * Throws `service_refused` with the service's words, also if the answer breaks off.
 */
export async function readChatAnswer(
  { headers, body }: Pick<Dispatcher.ResponseData, "headers" | "body">,
  show: (piece: string) => void,
): Promise<ChatResponse> {
  if (!String(headers["content-type"]).startsWith("text/event-stream")) {
    const { response } = read(ChatAnswer, parsed(await wholeOf(body)));
    show(response.data.content);
    return response;
  }
  for await (const { event, data } of eventsOf(body)) {
    if (event === "delta") show(read(Delta, data).content);
    if (event === "completed") return read(ChatAnswer, data).response;
    if (event === "error") throw refused(read(Failure, data).message);
  }
  throw refused("the service broke off its answer");
}

async function* eventsOf(body: AsyncIterable<Uint8Array>): AsyncGenerator<ServerEvent> {
  try {
    yield* readServerEvents(body, EVENT_CHARS_MAX);
  } catch (error) {
    throw brokenOff(error);
  }
}

async function wholeOf(body: AsyncIterable<Uint8Array>): Promise<string> {
  try {
    return await readText(body, ANSWER_BYTES_MAX);
  } catch (error) {
    throw brokenOff(error);
  }
}

function brokenOff(error: unknown): KbsyncError {
  return refused(`the service broke off its answer: ${messageOf(error)}`);
}

/** Returns undefined for text that is not JSON: no schema accepts it. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function read<S extends z.ZodType>(schema: S, value: unknown): z.output<S> {
  const found = schema.safeParse(value);
  if (found.success) return found.data;
  throw refused("the service answered a question in an unknown form");
}

function refused(words: string): KbsyncError {
  return new KbsyncError(words, { code: "service_refused" });
}

/** An event of a stream (https://html.spec.whatwg.org/multipage/server-sent-events.html). */
interface ServerEvent {
  readonly event: string;
  readonly data: unknown;
}

/** Reads server-sent events whose data is JSON. Throws a RangeError for an event longer than `charsMax`. */
async function* readServerEvents(
  body: AsyncIterable<Uint8Array>,
  charsMax: number,
): AsyncGenerator<ServerEvent> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const piece of body) {
    text += decoder.decode(piece, { stream: true });
    if (text.length > charsMax) throw new RangeError("an event has no end");
    for (let end = text.indexOf("\n\n"); end !== -1; end = text.indexOf("\n\n")) {
      const event = eventOf(text.slice(0, end));
      text = text.slice(end + 2);
      if (event !== undefined) yield event;
    }
  }
}

/** Undefined for a comment. */
function eventOf(block: string): ServerEvent | undefined {
  const lines = block.split("\n");
  const value = (name: string): string | undefined =>
    lines.find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2);
  const data = value("data");
  if (data === undefined) return undefined;
  return { event: value("event") ?? "", data: JSON.parse(data) };
}
