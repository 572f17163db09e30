import type { Dispatcher } from "undici";
import { z } from "zod";
import { KbsyncError, messageOf } from "../../lib/failure.ts";
import { ChatAnswer, type ChatResponse } from "../../wire/chat.ts";
import { Failure } from "../../wire/failure.ts";

const Delta = z.object({ content: z.string() });

/** Longest event in characters: a whole answer with its annotations. */
const EVENT_CHARS_MAX = 16 * 1024 * 1024;

/**
 * Reads the answer to a question, whether it comes in pieces or, from a service that knows no streams, as a whole;
 * `show` receives each piece. Throws `service_refused` with the service's words, also where it breaks off.
 */
export async function readChatAnswer(
  { headers, body }: Pick<Dispatcher.ResponseData, "headers" | "body">,
  show: (piece: string) => void,
): Promise<ChatResponse> {
  if (!String(headers["content-type"]).startsWith("text/event-stream")) {
    const { response } = read(ChatAnswer, await body.json());
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

interface StreamEvent {
  readonly event: string;
  readonly data: unknown;
}

async function* eventsOf(body: AsyncIterable<Uint8Array>): AsyncGenerator<StreamEvent> {
  const decoder = new TextDecoder();
  let text = "";
  try {
    for await (const piece of body) {
      text += decoder.decode(piece, { stream: true });
      if (text.length > EVENT_CHARS_MAX) throw refused("the service sent an event without end");
      for (let end = text.indexOf("\n\n"); end !== -1; end = text.indexOf("\n\n")) {
        const event = eventOf(text.slice(0, end));
        text = text.slice(end + 2);
        if (event !== undefined) yield event;
      }
    }
  } catch (error) {
    if (error instanceof KbsyncError) throw error;
    throw refused(`the service broke off its answer: ${messageOf(error)}`);
  }
}

/** Undefined for a comment. */
function eventOf(block: string): StreamEvent | undefined {
  const lines = block.split("\n");
  const value = (name: string): string | undefined =>
    lines.find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2);
  const data = value("data");
  return data === undefined ? undefined : { event: value("event") ?? "", data: JSON.parse(data) };
}

function read<S extends z.ZodType>(schema: S, value: unknown): z.output<S> {
  const found = schema.safeParse(value);
  if (found.success) return found.data;
  throw refused("the service answered a question in a form that is not known here");
}

function refused(words: string): KbsyncError {
  return new KbsyncError(words, { code: "service_refused" });
}
