import { openGate } from "../../lib/gate.ts";
import { newHexId } from "../../lib/ids.ts";
import type { ChatBody, ChatResponse, ChatUploadFields } from "../../wire/chat.ts";
import { isRemovable, readAgent, type Agents } from "../agents/agents.ts";
import { noteOf, type RequestContext } from "../resources/request-context.ts";
import { nowIso } from "../resources/knowledge-base.ts";
import { invalidField, Refusal } from "../resources/refusal.ts";
import type { ThreadLink } from "../store/records.ts";
import type { DeliveryTarget } from "../store/webhooks.ts";
import type { Waiting } from "./attempts.ts";
import { findSources, named } from "./images.ts";
import { answerTurn, type Asking, type TurnParts } from "./turn.ts";
import { webhookTarget } from "./webhook-target.ts";
import { openTurns } from "../../lib/turns.ts";

/** Questions answered at once: each may hold 32 MB of images. */
const WIDTH = 16;
/** Questions beyond that, each of an account of which none is answered: nobody waits for another's slow images. */
const GUESTS_MAX = 4;
/**
 * Bytes of images that are with models at once, of all questions: on its way each takes some six times its bytes, in the
 * forms that JSON has of it.
 */
const SHOWN_BYTES_MAX = 64 * 1024 * 1024;
/** Questions that wait for that; a model takes seconds, so nobody waits longer for its turn than for its answer. */
const LINE_MAX = 128;
/** Of one account, so that another one finds room. */
const LINE_SHARE_MAX = 96;
/** Of them in one thread, behind the one that is answered: each waits for all before it, so the last for some minutes. */
const THREAD_LINE_MAX = 16;
/** Requests that wait to be answered by webhook, of all accounts. */
export const JOBS_MAX = 1000;

/** What chat works with. */
export interface ChatParts extends Omit<TurnParts, "showing"> {
  readonly agents: Agents;
  /** Whether messages may be sent to a host, as far as its name tells. */
  readonly allowsHost: (host: string) => boolean;
  /** Counts questions of an agent and of a thread; throws `rate_limited`. */
  readonly takeTurn: (accountId: string, agentId: string, threadId: string | undefined) => void;
}

/** Operation 7, and what operation 8 asks of it. */
export interface Chat {
  readonly agents: Agents;
  /** Answers. Throws, with the field at fault, whatever a request can be refused for. */
  complete(accountId: string, body: ChatBody, waiting: Waiting): Promise<ChatResponse>;
  /** Checks a request whose answer is delivered later, and stores it with its note; durable when it resolves. */
  accept(
    accountId: string,
    body: ChatBody,
    context: Pick<RequestContext, "request">,
  ): Promise<{ readonly messageId: string }>;
  /** Works on a kept request; `asking` as `recall` gives it. */
  run(asking: Asking, waiting: Waiting): Promise<ChatResponse>;
  /** A kept request, checked anew: what it names may be gone meanwhile. */
  recall(accountId: string, messageId: string, body: ChatBody): Promise<Asking>;
  /** Where the answer of a request goes; undefined: into the response. Throws `invalid_field`. */
  targetOf(body: ChatBody): DeliveryTarget | undefined;
  /** The thread that the fields of an upload name; undefined: none. Throws. */
  threadOf(accountId: string, fields: ChatUploadFields): Promise<ThreadLink | undefined>;
  /** Refuses an upload that is no image, or none that can be looked at. */
  checkUpload(accountId: string, path: string, mediaType: string): Promise<void>;
}

/** Opens it. */
export function openChat(parts: ChatParts): Chat {
  const { kb, agents } = parts;
  const gate = openGate({
    width: WIDTH,
    guests: GUESTS_MAX,
    lineMax: LINE_MAX,
    shareMax: LINE_SHARE_MAX,
    full: busy,
  });
  const showing = openGate({ width: SHOWN_BYTES_MAX, lineMax: WIDTH + GUESTS_MAX, full: busy });
  // A thread's questions are answered in the order in which they came: each knows those before it.
  const threads = openThreadLines(THREAD_LINE_MAX, threadBusy);

  const check = async (accountId: string, messageId: string, body: ChatBody): Promise<Asking> => {
    const agent = await readAgent(agents, { accountId, id: body.agent_id }, "agent_id");
    const hasText = body.user !== undefined && body.user.trim() !== "";
    if (!hasText && body.user_urls.length === 0) {
      throw invalidField("user", "expected a text that is not empty, or an image in user_urls");
    }
    const sources = await findSources(kb, accountId, body.user_urls);
    return { accountId, agent, body, sources, messageId };
  };
  const count = ({ accountId, agent, body }: Asking): void => {
    parts.takeTurn(accountId, agent.id, body.thread_id ?? undefined);
  };
  const run = (asking: Asking, waiting: Waiting): Promise<ChatResponse> => {
    const { accountId, agent, body } = asking;
    const { signal } = waiting;
    // Whoever left while waiting is not asked for.
    const work = () =>
      gate.run(() => answerTurn({ ...parts, showing }, asking, waiting), {
        signal,
        path: [asking.accountId],
      });
    const { thread_id: threadId } = body;
    if (threadId === null || threadId === undefined) return work();
    return threads.run(`${accountId}/${agent.id}/${threadId}`, work, signal);
  };

  return {
    agents,
    run,
    recall: check,
    targetOf: (body) => webhookTarget(body, parts.allowsHost),
    complete: async (accountId, body, waiting) => {
      const asking = await check(accountId, newHexId(kb.nowMs()), body);
      count(asking);
      return run(asking, waiting);
    },
    accept: async (accountId, body, context) => {
      if (body.stream) throw invalidField("stream", "expected false where the answer goes to a webhook");
      const messageId = newHexId(kb.nowMs());
      count(await check(accountId, messageId, body));
      const job = {
        queue: "chat",
        accountId,
        line: lineOf(accountId, messageId, body),
        name: messageId,
        body: JSON.stringify(body),
        nowMs: kb.nowMs(),
        jobsMax: JOBS_MAX,
      } as const;
      await kb.store.addQuestion(job, noteOf(context, 202, kb.nowMs()));
      return { messageId };
    },
    threadOf: async (accountId, { agent_id: agentId, thread_id: threadId }) => {
      if (agentId === undefined && threadId === undefined) return undefined;
      if (agentId === undefined) throw invalidField("agent_id", "expected with thread_id, got nothing");
      const agent = await readAgent(agents, { accountId, id: agentId }, "agent_id");
      if (threadId === undefined) throw invalidField("thread_id", "expected with agent_id, got nothing");
      const isStoredAgent = isRemovable(agent);
      const at = { accountId, agentId, threadId: threadId.toWellFormed() };
      return { ...at, isStoredAgent, agentCreatedAt: agent.createdAt, nowIso: nowIso(kb) };
    },
    checkUpload: async (accountId, path, mediaType) => {
      if (!mediaType.startsWith("image/")) {
        throw new Refusal("unsupported_media_type", `file: expected an image, got ${mediaType}.`, {
          field: "file",
          hint: "Taken are PNG, JPEG, WebP, GIF, BMP and TIFF; the bytes decide.",
        });
      }
      await named("file", () => parts.reader.look(path, mediaType, { render: false, tenant: [accountId] }));
    },
  };
}

/** Questions of one thread are answered in their order. As a thread is stored: two names that differ in no character are one. */
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
    hint: "A thread is answered in order, one question at a time; wait for its answers.",
  });
}

/** Questions of one thread, answered one after another in the order in which they came. */
interface ThreadLines {
  /** Runs the work in its turn. Throws what `full` makes, and the signal's reason as soon as the asker left the line. */
  run<T>(thread: string, work: () => Promise<T>, signal: AbortSignal): Promise<T>;
}

/** Opens the lines; in each at most `lineMax` wait behind the one that is answered. */
export function openThreadLines(lineMax: number, full: () => Error): ThreadLines {
  const turns = openTurns();
  /** How many of a thread run or wait; those who left wait no more. */
  const counts = new Map<string, number>();
  const add = (thread: string, more: number): void => {
    const count = (counts.get(thread) ?? 0) + more;
    if (count === 0) counts.delete(thread);
    else counts.set(thread, count);
  };

  return {
    run: async (thread, work, signal) => {
      signal.throwIfAborted();
      if ((counts.get(thread) ?? 0) > lineMax) throw full();
      add(thread, 1);
      let hasBegun = false;
      const left = Promise.withResolvers<never>();
      const leave = (): void => {
        if (!hasBegun) left.reject(signal.reason);
      };
      signal.addEventListener("abort", leave);
      try {
        const inTurn = turns.run(thread, async () => {
          signal.throwIfAborted();
          hasBegun = true;
          return work();
        });
        // Started work always runs to its end: the thread's next question must not run beside it.
        return await Promise.race([inTurn, left.promise]);
      } finally {
        signal.removeEventListener("abort", leave);
        add(thread, -1);
      }
    },
  };
}
