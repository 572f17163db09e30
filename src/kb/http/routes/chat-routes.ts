import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { ChatAccepted, ChatAnswer, ChatBody, ChatDelta } from "../../../wire/chat.ts";
import { Refused } from "../../../wire/answers.ts";
import { IDEMPOTENCY_HEADER, ROUTES } from "../../../wire/routes.ts";
import type { Chat } from "../../chat/chat.ts";
import type { StoredAnswer } from "../../store/request-note.ts";
import type { DeliveryTarget } from "../../store/webhooks.ts";
import { openEventStream } from "../streams/event-stream.ts";
import { readIdempotencyKey, readStoredAnswer } from "../operation/idempotency.ts";
import type { SentAnswer } from "../operation/idempotency.ts";
import { disconnectSignal } from "../limits/disconnect.ts";
import { callerOf, requestSha256, requireKey, routeConfig, send, sendJson } from "../operation/operation.ts";
import type { HttpParts } from "../operation/operation.ts";
import { IDEMPOTENCY_DOC } from "../operation/route-table.ts";
import type { RouteDoc } from "../operation/route-table.ts";
import { refusalAnswer } from "../operation/status.ts";
import { readBody } from "../body/validate.ts";

const DOC = {
  summary:
    "Asks an agent, with or without images; `stream` answers as server-sent events, a webhook later (202).",
  tag: "Chat",
  body: ChatBody,
  events: { delta: ChatDelta, completed: ChatAnswer, error: Refused },
  headers: { [IDEMPOTENCY_HEADER]: `${IDEMPOTENCY_DOC} Of questions whose answers go to a webhook.` },
  answers: { 200: ChatAnswer, 202: ChatAccepted },
} satisfies RouteDoc;

/** Added to the answer if the message to the webhook is not signed. */
const UNSIGNED = " It is not signed: send webhook.secret to have it signed.";
/** The longest question, with every character escaped, with variables and addresses. */
const CHAT_BODY_BYTES_MAX = 6 * 1024 * 1024;

/** Adds operation 7. */
export function addChatRoutes(server: FastifyInstance, parts: HttpParts, chat: Chat): void {
  server.route({
    method: "POST",
    url: ROUTES.chat,
    bodyLimit: CHAT_BODY_BYTES_MAX,
    onRequest: requireKey(parts, "chat"),
    config: routeConfig("chat", DOC),
    handler: async (request, reply) => {
      const { accountId } = callerOf(request);
      const body = readBody(ChatBody, request.body);
      const target = chat.targetOf(body);
      if (target !== undefined) return send(reply, await accept(parts, chat, request, body, target));
      const signal = disconnectSignal(request, reply);
      if (body.stream) return stream(parts, chat, accountId, body, signal, reply);
      const response = await chat.complete(accountId, body, { signal });
      const answer: ChatAnswer = { success: true, response };
      return sendJson(reply, 200, JSON.stringify(answer));
    },
  });
}

/** Accepts a question whose answer goes to a webhook; only once under an Idempotency-Key. */
async function accept(
  { idempotency }: HttpParts,
  chat: Chat,
  request: FastifyRequest,
  body: ChatBody,
  { secret }: DeliveryTarget,
): Promise<SentAnswer> {
  const { accountId } = callerOf(request);
  const key = readIdempotencyKey(request.headers[IDEMPOTENCY_HEADER]);
  const answerOf = (messageId: string): SentAnswer => {
    const signed = secret !== undefined;
    const message = `Your response will be sent through configured means.${signed ? "" : UNSIGNED}`;
    const accepted: ChatAccepted = { success: true, message, message_id: messageId, signed };
    return { status: 202, body: JSON.stringify(accepted) };
  };
  if (key === undefined) return answerOf((await chat.accept(accountId, body, {})).messageId);
  const sha256 = requestSha256(request);
  const work = async (): Promise<SentAnswer> => {
    const context = { request: { key, bodySha256: sha256 } };
    return answerOf((await chat.accept(accountId, body, context)).messageId);
  };
  const replay = async (noted: StoredAnswer): Promise<SentAnswer> => {
    const note = readStoredAnswer(noted);
    if (note.kind !== "question") throw new Error("a question was noted as something else");
    // The request is the same, so its target has the same secret.
    return answerOf(note.messageId);
  };
  return idempotency.once({ accountId, key, sha256 }, work, replay);
}

/** Streams an answer. A failure before the first event is answered with its status, as without a stream; later as an event. */
async function stream(
  { answerIdleMs, log }: HttpParts,
  chat: Chat,
  accountId: string,
  body: ChatBody,
  signal: AbortSignal,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const events = openEventStream(reply, answerIdleMs);
  const onText = (content: string): void => {
    const delta: ChatDelta = { content };
    events.send("delta", delta);
  };
  try {
    const response = await chat.complete(accountId, body, { signal, onText });
    const answer: ChatAnswer = { success: true, response };
    events.send("completed", answer);
  } catch (error) {
    if (!events.hasStarted()) {
      events.cancel();
      throw error;
    }
    const { status, body: failure } = refusalAnswer(error);
    if (!signal.aborted && status >= 500) {
      const line = { requestId: reply.request.id, code: failure.error.code };
      // The status 200 has been sent, so nothing else reports the failure.
      if (status === 500) log.error({ ...line, err: error }, "a streamed answer failed");
      else log.warn({ ...line, problem: failure.message }, "a streamed answer failed");
    }
    events.send("error", failure);
  }
  events.end();
  return reply;
}
