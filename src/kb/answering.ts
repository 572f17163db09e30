import type { Logger } from "pino";
import type { AgentConfig, KnowledgePart } from "../wire/agent.ts";
import { openChat, type Chat } from "./chat/chat.ts";
import { openImageReader } from "./chat/image-reader.ts";
import { openChatJobs, type ChatJobRunner, type QuestionOutcome } from "./chat/job-runner.ts";
import type { Answerers } from "./chat/attempts.ts";
import type { Fetcher } from "./fetch/fetcher.ts";
import { openRateLimiter, type RateRule } from "./http/rate.ts";
import type { ModelFacts } from "./models/price.ts";
import type { KnowledgeBase } from "./resources/knowledge-base.ts";
import { isDamage } from "./store/damage.ts";

/** How questions are answered. */
export interface ChatOptions {
  readonly agents: readonly AgentConfig[];
  /** What the agent `default` reads; asked at each question, for it may change while the service runs. */
  readonly defaultKnowledge: () => readonly KnowledgePart[];
  /** What is known of models, by name. */
  readonly models: Readonly<Record<string, ModelFacts>>;
  /** Window of a model of which it is not known. */
  readonly contextTokens: number;
  readonly timeoutMs: number;
}

/** What holds where nobody said otherwise. */
export const DEFAULT_CHAT: ChatOptions = {
  agents: [],
  defaultKnowledge: () => [],
  models: {},
  contextTokens: 8192,
  timeoutMs: 120_000,
};

/** Questions an agent and a thread may be asked a minute, where the requests of keys are limited at all. */
const AGENT_RATE: RateRule = { perMinute: 100, burst: 100 };
const THREAD_RATE: RateRule = { perMinute: 20, burst: 20 };

/** What questions are answered with, beside the knowledge base. */
export interface AnsweringParts {
  readonly kb: KnowledgeBase;
  readonly log: Logger;
  /** The caller's. Undefined: none is configured, and the builtin agent answers. */
  readonly endpoint: Answerers["endpoint"];
  readonly options: Partial<ChatOptions> | undefined;
  /** For images; its bytes are counted where they are kept. */
  readonly fetcher: Fetcher;
  readonly imageDays: number;
  readonly allowsHost: (host: string) => boolean;
  /** Whether questions are counted at all. */
  readonly isRated: boolean;
  /** Notified how each question ended whose answer goes to a webhook. */
  readonly onEnded: ((outcome: QuestionOutcome) => void) | undefined;
}

/** Chat with what it runs on. */
export interface Answering {
  readonly chat: Chat;
  readonly jobs: ChatJobRunner;
  close(): Promise<void>;
}

/** Puts together what answers questions: agents, the model or its builtin stand-in, images, and the queue of later answers. */
export function openAnswering(parts: AnsweringParts): Answering {
  const { kb, log, endpoint, isRated } = parts;
  const options = { ...DEFAULT_CHAT, ...parts.options };
  const factsOf = (name: string): ModelFacts | undefined =>
    Object.hasOwn(options.models, name) ? options.models[name] : undefined;
  const reader = openImageReader();
  const agentRate = openRateLimiter(isRated ? AGENT_RATE : undefined, "The agent");
  const threadRate = openRateLimiter(isRated ? THREAD_RATE : undefined, "The thread");
  const chat = openChat({
    kb,
    agents: {
      store: kb.store,
      configured: options.agents,
      defaultKnowledge: options.defaultKnowledge,
      nowMs: kb.nowMs,
      turns: kb.turns,
    },
    fetcher: parts.fetcher,
    reader,
    answerers: {
      endpoint,
      ocr: kb.ingest.ocr,
      contextTokensOf: (name) => factsOf(name)?.contextTokens ?? options.contextTokens,
    },
    factsOf,
    imageDays: parts.imageDays,
    onProblem: (error) =>
      log.error(
        { err: error },
        "an image of a stored answer was not moved out of incoming; the next start moves it",
      ),
    allowsHost: parts.allowsHost,
    takeTurn: (accountId, agentId, threadId) => {
      // The narrower one first: what a thread is refused, its agent does not pay for.
      if (threadId !== undefined) threadRate.take(`${accountId}/${agentId}/${threadId}`, kb.steadyMs());
      agentRate.take(`${accountId}/${agentId}`, kb.steadyMs());
    },
  });
  const jobs = openChatJobs({
    kb,
    chat,
    onEnded: (messageId, code) => {
      parts.onEnded?.(code === undefined ? "answered" : "failed");
      if (code !== undefined)
        log.warn({ messageId, code }, "a question could not be answered; its webhook is notified");
    },
    onFull: (error) =>
      log.error({ err: error }, "questions wait for room on the disk; each for a day at most"),
    onProblem: (error) => {
      // Of a damaged store the service tells when it is first met.
      if (!isDamage(error)) log.error({ err: error }, "the queue of questions stands still, tries again");
    },
  });
  return {
    chat,
    jobs,
    close: async () => {
      await jobs.close();
      reader.close();
    },
  };
}
