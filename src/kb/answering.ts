import type { Logger } from "pino";
import { CONTEXT_TOKENS_DEFAULT } from "../wire/constants.ts";
import type { AgentConfig, KnowledgePart } from "../wire/agent.ts";
import { openChat, type Chat, type ChatParts } from "./chat/chat.ts";
import { openImageReader } from "./chat/image-reader.ts";
import { openChatJobs, type ChatJobRunner, type QuestionOutcome } from "./chat/job-runner.ts";
import type { Answerers } from "./chat/attempts.ts";
import type { Fetcher } from "./fetch/fetcher.ts";
import { openRateLimiter, type RateLimiter, type RateRule } from "./http/limits/rate.ts";
import { openSharedRate } from "./http/limits/shared-rate.ts";
import type { ModelFacts } from "./models/price.ts";
import type { TokenBuckets } from "./store/token-buckets.ts";
import type { KnowledgeBase } from "./resources/knowledge-base.ts";

/** Options of answering questions. */
export interface ChatOptions {
  readonly agents: readonly AgentConfig[];
  /** Returns the sources of the agent `default`. Called for each question, because it may change while the service runs. */
  readonly defaultKnowledge: () => readonly KnowledgePart[];
  /** Facts about models, by name. */
  readonly models: Readonly<Record<string, ModelFacts>>;
  /** Window of a model without known facts. */
  readonly contextTokens: number;
  readonly timeoutMs: number;
}

/** The default options. */
export const DEFAULT_CHAT: ChatOptions = {
  agents: [],
  defaultKnowledge: () => [],
  models: {},
  contextTokens: CONTEXT_TOKENS_DEFAULT,
  timeoutMs: 120_000,
};

/** Rates of questions to one agent and one thread. They apply only if the requests of keys are limited. */
const AGENT_RATE: RateRule = { perMinute: 100, burst: 100 };
const THREAD_RATE: RateRule = { perMinute: 20, burst: 20 };

/** The dependencies of answering questions. */
export interface AnsweringParts {
  readonly kb: KnowledgeBase;
  readonly log: Logger;
  /** Owned by the caller. Undefined: none is configured, and the builtin agent answers. */
  readonly endpoint: Answerers["endpoint"];
  readonly options: Partial<ChatOptions> | undefined;
  /** Fetches images. The limit on bytes applies where they are stored. */
  readonly fetcher: Fetcher;
  readonly imageDays: number;
  readonly allowsHost: (host: string) => boolean;
  /** Whether rates apply. */
  readonly isRated: boolean;
  /** Rates that several processes share. */
  readonly buckets?: TokenBuckets | undefined;
  /** Reports failures of the queue that no question caused. */
  readonly onProblem: (error: unknown) => void;
  /** Reports the outcome of each question whose answer goes to a webhook. */
  readonly onEnded: ((outcome: QuestionOutcome) => void) | undefined;
}

/** The chat and its queue. */
export interface Answering {
  readonly chat: Chat;
  readonly jobs: ChatJobRunner;
  close(): Promise<void>;
}

/** Assembles chat: agents, the model or the builtin agent, images, and the queue of answers by webhook. */
export function openAnswering(parts: AnsweringParts): Answering {
  const { kb, log, endpoint } = parts;
  const options = { ...DEFAULT_CHAT, ...parts.options };
  const factsOf = (name: string): ModelFacts | undefined =>
    Object.hasOwn(options.models, name) ? options.models[name] : undefined;
  const reader = openImageReader();
  const takeTurn = openQuestionRates(parts);
  const chat = openChat({
    kb,
    agents: {
      configured: options.agents,
      defaultKnowledge: options.defaultKnowledge,
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
    takeTurn,
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
      log.error({ err: error }, "questions wait because the disk is full; each for a day at most"),
    onProblem: parts.onProblem,
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

/** Opens the rates of agents and threads, and returns what counts a question for both. */
function openQuestionRates({ kb, isRated, buckets }: AnsweringParts): ChatParts["takeTurn"] {
  if (!isRated) return () => Promise.resolve();
  const open = (kind: string, who: string, rule: RateRule): RateLimiter =>
    buckets === undefined ? openRateLimiter(rule, who) : openSharedRate({ buckets, kind, rule, who });
  const agents = open("agent", "The agent", AGENT_RATE);
  const threads = open("thread", "The thread", THREAD_RATE);
  return async (accountId, agentId, threadId) => {
    // The narrower rate first: a question that its thread refuses does not count for the agent.
    if (threadId !== undefined) await threads.take(`${accountId}/${agentId}/${threadId}`, kb.steadyMs());
    await agents.take(`${accountId}/${agentId}`, kb.steadyMs());
  };
}
