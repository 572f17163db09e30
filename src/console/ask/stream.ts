import type { ChatAnswer, ChatDelta, ChatResponse } from "../../wire/chat.ts";
import { CONSOLE_HEADER, REQUEST_ID_HEADER, ROUTES } from "../../wire/routes.ts";
import { readEvent, type ServerEvent } from "./events.ts";
import { persist, refusalOf, RequestError } from "../client/api.ts";

/** A question to an agent. */
export interface Question {
  readonly agent_id: string;
  readonly user: string;
  readonly thread_id: string;
  readonly user_urls: readonly { readonly type: "image"; readonly url: string }[];
}

/**
 * Asks an agent and returns the whole answer. Notifies `onText` of each piece as it comes. A question that was not accepted waits
 * for the service or a session; one whose answer breaks off fails. Throws `RequestError`.
 */
export async function askAgent(
  question: Question,
  onText: (piece: string) => void,
  signal: AbortSignal,
): Promise<ChatResponse> {
  const answer = await persist(() => open(question, signal), false, signal);
  if (answer.headers.get("content-type")?.startsWith("text/event-stream") !== true)
    return ((await answer.json()) as ChatAnswer).response; // the service checks its answers against the schema
  const requestId = answer.headers.get(REQUEST_ID_HEADER) ?? undefined;
  for await (const { event, data } of eventsOf(answer, signal)) {
    const value: unknown = JSON.parse(data);
    if (event === "delta") onText((value as ChatDelta).content);
    if (event === "completed") return (value as ChatAnswer).response;
    if (event === "error") throw refusalOf(value, 0, requestId, null);
  }
  throw new RequestError("The answer broke off.", { hint: "Ask again.", ...(requestId && { requestId }) });
}

async function open(question: Question, signal: AbortSignal): Promise<Response> {
  let answer: Response;
  try {
    answer = await fetch(ROUTES.chat, {
      method: "POST",
      headers: { "content-type": "application/json", [CONSOLE_HEADER]: "1" },
      body: JSON.stringify({ ...question, stream: true }),
      signal,
      cache: "no-store",
    });
  } catch (error) {
    signal.throwIfAborted();
    throw new RequestError("The service does not answer.", { hint: String(error) });
  }
  if (answer.ok) return answer;
  const value: unknown = await answer.json().catch(() => undefined);
  const requestId = answer.headers.get(REQUEST_ID_HEADER) ?? undefined;
  throw refusalOf(value, answer.status, requestId, answer.headers.get("retry-after"));
}

/** Reads server-sent events. Throws `RequestError` when the connection breaks. */
async function* eventsOf(answer: Response, signal: AbortSignal): AsyncGenerator<ServerEvent> {
  const reader = answer.body?.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const piece = await reader?.read().catch((error: unknown) => {
      signal.throwIfAborted();
      throw new RequestError("The connection broke off during the answer.", { hint: String(error) });
    });
    if (piece === undefined || piece.done) return;
    rest += piece.value;
    const blocks = rest.split("\n\n");
    rest = blocks.pop() ?? "";
    for (const block of blocks) {
      const found = readEvent(block);
      if (found !== undefined) yield found;
    }
  }
}
