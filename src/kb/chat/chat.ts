import { openGate } from "../../lib/gate.ts";
import { newHexId } from "../../lib/ids.ts";
import type { ChatBody, ChatResponse, ChatUploadFields } from "../../wire/chat.ts";
import { readAgent, type Agents } from "../agents/agents.ts";
import { noteOf, type RequestContext } from "../resources/request-context.ts";
import { nowIso } from "../resources/knowledge-base.ts";
import { invalidField, Refusal } from "../resources/refusal.ts";
import type { ThreadLink } from "../store/thread-link.ts";
import type { DeliveryTarget } from "../store/webhooks.ts";
import type { AnswerOptions } from "./attempts.ts";
import { findSources, withField } from "./images.ts";
import { openThreadQueues } from "./thread-queues.ts";
import { answerTurn, type CheckedRequest, type TurnParts } from "./turn.ts";
import { webhookTarget } from "./webhook-target.ts";

/** Questions answered at once: each may hold 32 MB of images. */
const WIDTH = 16;
/** Extra questions, each of an account without one in progress, so that no account waits for another's slow images. */
const GUESTS_MAX = 4;
/**
 * Most bytes of images in flight to models, of all questions. During a request each takes some six times its bytes, in various forms
 * of JSON.
 */
const IMAGE_BYTES_IN_FLIGHT_MAX = 64 * 1024 * 1024;
/** Most waiting questions. A model takes seconds, so no question waits longer for its turn than for its answer. */
const LINE_MAX = 128;
/** Most waiting questions of one account, so that others can still queue. */
const LINE_SHARE_MAX = 96;
/** Most waiting questions of one thread. Each waits for all before it, so the last one waits some minutes. */
const THREAD_LINE_MAX = 16;
/** Longest wait for a question of the thread that another process answers: a model takes two minutes at most. */
const THREAD_WAIT_MS = 150_000;
/** Most waiting requests with a webhook, of all accounts. */
export const JOBS_MAX = 1000;

/** The dependencies of chat. */
export interface ChatParts extends Omit<TurnParts, "imageGate"> {
  readonly agents: Agents;
  /** Reports whether messages may go to a host, judged by its name. */
  readonly allowsHost: (host: string) => boolean;
  /** Counts questions of an agent and of a thread. Rejects with `rate_limited`. */
  readonly takeTurn: (accountId: string, agentId: string, threadId: string | undefined) => Promise<void>;
}

/** Operation 7, and what operation 8 needs of it. */
export interface Chat {
  readonly agents: Agents;
  /** Answers a request. Throws, with the invalid field, every refusal of a request. */
  complete(accountId: string, body: ChatBody, options: AnswerOptions): Promise<ChatResponse>;
  /** Checks a request whose answer is delivered later, and stores it with its note. It is durable when this resolves. */
  accept(
    accountId: string,
    body: ChatBody,
    context: Pick<RequestContext, "request">,
  ): Promise<{ readonly messageId: string }>;
  /** Answers a stored request, which `recall` returned. */
  run(request: CheckedRequest, options: AnswerOptions): Promise<ChatResponse>;
  /** Checks a stored request again, because what it names may be gone. */
  recall(accountId: string, messageId: string, body: ChatBody): Promise<CheckedRequest>;
  /** Returns where the answer of a request goes; undefined: into the response. Throws `invalid_field`. */
  targetOf(body: ChatBody): DeliveryTarget | undefined;
  /** Returns the thread that the fields of an upload name; undefined: none. Throws `invalid_field` and `agent_not_found`. */
  threadOf(accountId: string, fields: ChatUploadFields): Promise<ThreadLink | undefined>;
  /** Refuses an upload that is not a readable image. */
  checkUpload(accountId: string, path: string, mediaType: string): Promise<void>;
}

/** Opens the chat. */
export function openChat(parts: ChatParts): Chat {
  const { kb, agents } = parts;
  const gate = openGate({
    width: WIDTH,
    guests: GUESTS_MAX,
    lineMax: LINE_MAX,
    shareMax: LINE_SHARE_MAX,
    full: busy,
  });
  const imageGate = openGate({ width: IMAGE_BYTES_IN_FLIGHT_MAX, lineMax: WIDTH + GUESTS_MAX, full: busy });
  // The questions of a thread are answered in order, because each answer may refer to those before.
  const threads = openThreadQueues(THREAD_LINE_MAX, threadBusy);

  const check = async (accountId: string, messageId: string, body: ChatBody): Promise<CheckedRequest> => {
    const agent = readAgent(agents, body.agent_id, "agent_id");
    const hasText = body.user !== undefined && body.user.trim() !== "";
    if (!hasText && body.user_urls.length === 0) {
      throw invalidField("user", "expected a text that is not empty, or an image in user_urls");
    }
    const sources = await findSources(kb, accountId, body.user_urls);
    return { accountId, agent, body, sources, messageId };
  };
  const count = ({ accountId, agent, body }: CheckedRequest): Promise<void> =>
    parts.takeTurn(accountId, agent.id, body.thread_id ?? undefined);
  const run = (request: CheckedRequest, options: AnswerOptions): Promise<ChatResponse> => {
    const { accountId, agent, body } = request;
    const { signal } = options;
    // A question whose client left while it waited is not answered.
    const work = (): Promise<ChatResponse> =>
      gate.run(() => answerTurn({ ...parts, imageGate }, request, options), { signal, path: [accountId] });
    const { thread_id: threadId } = body;
    if (threadId === null || threadId === undefined) return work();
    const name = `${accountId}/${agent.id}/${threadId}`;
    const wait = { waitMs: THREAD_WAIT_MS, busy: threadBusy, signal };
    return threads.run(name, () => kb.sharedTurns.run(`thread ${name}`, wait, work), signal);
  };

  return {
    agents,
    run,
    recall: check,
    targetOf: (body) => webhookTarget(body, parts.allowsHost),
    complete: async (accountId, body, options) => {
      const request = await check(accountId, newHexId(kb.nowMs()), body);
      await count(request);
      return run(request, options);
    },
    accept: async (accountId, body, context) => {
      if (body.stream) throw invalidField("stream", "expected false where the answer goes to a webhook");
      const messageId = newHexId(kb.nowMs());
      await count(await check(accountId, messageId, body));
      const job = {
        queue: "chat",
        accountId,
        line: lineOf(accountId, messageId, body),
        name: messageId,
        body: JSON.stringify(body),
        nowMs: kb.nowMs(),
        jobsMax: JOBS_MAX,
      } as const;
      await kb.records.addQuestion(job, noteOf(context, 202, kb.nowMs()));
      return { messageId };
    },
    threadOf: (accountId, fields) => threadOf(parts, accountId, fields),
    checkUpload: (accountId, path, mediaType) => checkUpload(parts, accountId, path, mediaType),
  };
}

async function threadOf(
  { kb, agents }: Pick<ChatParts, "kb" | "agents">,
  accountId: string,
  { agent_id: agentId, thread_id: threadId }: ChatUploadFields,
): Promise<ThreadLink | undefined> {
  if (agentId === undefined && threadId === undefined) return undefined;
  if (agentId === undefined) throw invalidField("agent_id", "expected with thread_id, got nothing");
  readAgent(agents, agentId, "agent_id");
  if (threadId === undefined) throw invalidField("thread_id", "expected with agent_id, got nothing");
  return { accountId, agentId, threadId: threadId.toWellFormed(), nowIso: nowIso(kb) };
}

async function checkUpload(
  { reader }: Pick<ChatParts, "reader">,
  accountId: string,
  path: string,
  mediaType: string,
): Promise<void> {
  if (!mediaType.startsWith("image/")) {
    throw new Refusal("unsupported_media_type", `file: expected an image, got ${mediaType}.`, {
      field: "file",
      hint: "Accepted are PNG, JPEG, WebP, GIF, BMP and TIFF; the content decides.",
    });
  }
  await withField("file", () => reader.inspect(path, mediaType, { render: false, tenant: [accountId] }));
}

/** Returns the order key of a question: its thread under the name that the store uses, or the question itself without one. */
function lineOf(
  accountId: string,
  messageId: string,
  { agent_id: agentId, thread_id: threadId }: ChatBody,
): string {
  if (threadId === null || threadId === undefined) return messageId;
  return JSON.stringify([accountId, agentId, threadId.toWellFormed()]);
}

function busy(): Refusal {
  return new Refusal("overloaded", "Too many questions are waiting to be answered.");
}

function threadBusy(): Refusal {
  return new Refusal("overloaded", "Too many questions of this thread are waiting to be answered.", {
    field: "thread_id",
    hint: "A thread answers one question at a time; wait for its answers.",
  });
}
