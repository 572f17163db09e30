import type { FastifyInstance, FastifyReply } from "fastify";
import { ChatAccepted, ChatAnswer, ChatBody } from "../../wire/chat.ts";
import { ROUTES } from "../../wire/routes.ts";
import type { Chat } from "../chat/chat.ts";
import { openEventStream } from "./event-stream.ts";
import { leavingSignal } from "./leaving.ts";
import { callerOf, requireKey, routeConfig, sendJson } from "./operation.ts";
import type { HttpParts } from "./operation.ts";
import type { RouteDoc } from "./route-table.ts";
import { refusalAnswer } from "./status.ts";
import { readBody } from "./validate.ts";

const DOC: RouteDoc = {
  summary:
    "Asks an agent, with images or without; `stream` answers as server-sent events, a webhook later (202).",
  tag: "Chat",
  body: ChatBody,
  events:
    "With `stream`: events `delta` (`{content}`) and, last, `completed` (as the JSON answer) or `error` (a Failure).",
  answers: { 200: ChatAnswer, 202: ChatAccepted },
};

/** The longest question, escaped in the longest way, with variables and addresses. */
const CHAT_BODY_BYTES_MAX = 6 * 1024 * 1024;

/** Operation 7. */
export function addChatRoutes(server: FastifyInstance, parts: HttpParts, chat: Chat): void {
  server.route({
    method: "POST",
    url: ROUTES.chat,
    bodyLimit: CHAT_BODY_BYTES_MAX,
    onRequest: requireKey(parts.keyring, "chat"),
    config: routeConfig("chat", DOC),
    handler: async (request, reply) => {
      const { accountId } = callerOf(request);
      const body = readBody(ChatBody, request.body);
      if (chat.targetOf(body) !== undefined) {
        const { messageId } = await chat.accept(accountId, body);
        const message = "Your response will be sent through configured means.";
        const accepted: ChatAccepted = { success: true, message, message_id: messageId };
        return sendJson(reply, 202, JSON.stringify(accepted));
      }
      const signal = leavingSignal(request, reply);
      if (body.stream) return stream(parts, chat, accountId, body, signal, reply);
      const response = await chat.complete(accountId, body, { signal });
      const answer: ChatAnswer = { success: true, response };
      return sendJson(reply, 200, JSON.stringify(answer));
    },
  });
}

/** What fails before the first piece is an answer with its status, as without a stream; later it is an event. */
async function stream(
  { answerIdleMs, log }: HttpParts,
  chat: Chat,
  accountId: string,
  body: ChatBody,
  signal: AbortSignal,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const events = openEventStream(reply, answerIdleMs);
  const onText = (content: string): void => events.send("delta", { content });
  try {
    const response = await chat.complete(accountId, body, { signal, onText });
    const answer: ChatAnswer = { success: true, response };
    events.send("completed", answer);
  } catch (error) {
    if (!events.hasBegun()) {
      events.giveUp();
      throw error;
    }
    const { status, body: failure } = refusalAnswer(error);
    if (!signal.aborted && status >= 500) {
      const line = { requestId: reply.request.id, code: failure.error.code };
      // Its status was sent as 200: nothing else would tell of it.
      if (status === 500) log.error({ ...line, err: error }, "a streamed answer broke off");
      else log.warn({ ...line, problem: failure.message }, "a streamed answer broke off");
    }
    events.send("error", failure);
  }
  events.end();
  return reply;
}
