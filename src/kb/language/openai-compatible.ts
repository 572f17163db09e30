import { z } from "zod";
import { codeOf, KbsyncError, messageOf } from "../../lib/failure.ts";
import { openJsonEndpoint } from "../../lib/json-endpoint.ts";
import type { Completion, LanguageModel } from "./language-model.ts";

/** Where the model answers. */
export interface LanguageModelOptions {
  /** Up to the version, as clients of such services take it: `https://api.openai.com/v1`. */
  readonly baseUrl: string;
  readonly model: string;
  /** Undefined: none is sent, as servers on the own machine need none. */
  readonly apiKey: string | undefined;
  /** Longest wait for one answer. Default two minutes: a model on a machine without a graphics card takes its time. */
  readonly timeoutMs?: number;
  /** Tries of a question that nobody answered. Default 3. */
  readonly attempts?: number;
  /** First wait between two tries. Default one second. */
  readonly delayMs?: number;
}

const TIMEOUT_MS = 120_000;
const ATTEMPTS = 3;
const DELAY_MS = 1000;
/** Largest answer read: models answer some KB. */
const ANSWER_BYTES_MAX = 1024 * 1024;
/** Questions under way at once, so that a service answers others, too. */
const CONNECTIONS = 4;

/** What makes an answer repeatable. Some models refuse one or the other; they are asked without from then on. */
const REPEATABLE = { temperature: 0, seed: 1 } as const;

const Answer = z.object({
  choices: z
    .array(
      z.object({
        finish_reason: z.string().nullish(),
        message: z.object({ content: z.string().nullish(), refusal: z.string().nullish() }),
      }),
    )
    .min(1),
});

/**
 * A model behind `POST {baseUrl}/chat/completions`, the form of OpenAI, vLLM, Ollama, llama.cpp and others. Nothing is
 * sent before the first question.
 */
export function openLanguageModel(options: LanguageModelOptions): LanguageModel {
  const { model, apiKey, timeoutMs = TIMEOUT_MS, attempts = ATTEMPTS, delayMs = DELAY_MS } = options;
  const url = `${options.baseUrl.replace(/\/+$/, "")}/chat/completions`;
  const endpoint = openJsonEndpoint({
    url,
    apiKey,
    timeoutMs,
    attempts,
    delayMs,
    answerBytesMax: ANSWER_BYTES_MAX,
    connections: CONNECTIONS,
  });
  const refused = new Set<string>();

  const ask = async (completion: Completion, signal: AbortSignal | undefined): Promise<unknown> => {
    const repeatable = Object.entries(REPEATABLE).filter(([name]) => !refused.has(name));
    const body = { model, messages: messagesOf(completion), ...Object.fromEntries(repeatable) };
    try {
      return await endpoint.post(body, signal);
    } catch (error) {
      const named = repeatable.find(([name]) => messageOf(error).includes(name));
      if (codeOf(error) !== "endpoint_refused" || named === undefined) throw error;
      refused.add(named[0]);
      return ask(completion, signal);
    }
  };

  return {
    name: model,
    complete: async (completion, signal) => {
      let answer: unknown;
      try {
        answer = await ask(completion, signal);
      } catch (error) {
        signal?.throwIfAborted();
        throw failureOf(error, url);
      }
      return textOf(answer, url);
    },
    close: () => endpoint.close(),
  };
}

function messagesOf({ system, turns }: Completion): object[] {
  return [{ role: "system", content: system }, ...turns.map(({ role, text }) => ({ role, content: text }))];
}

/** The text of an answer that is whole. */
function textOf(answer: unknown, url: string): string {
  const choice = Answer.safeParse(answer).data?.choices[0];
  if (choice === undefined) throw unusable(url, "it is not that of a chat completion");
  const { finish_reason: reason, message } = choice;
  if (typeof message.refusal === "string" && message.refusal !== "") throw unusable(url, "the model refused");
  if (typeof reason === "string" && reason !== "stop") throw unusable(url, `it ended by ${reason}`);
  if (typeof message.content !== "string" || message.content === "") throw unusable(url, "it is empty");
  return message.content;
}

/** The failure of the exchange in the words of a language model. */
function failureOf(cause: unknown, url: string): unknown {
  switch (codeOf(cause)) {
    case "endpoint_unreachable":
      return new KbsyncError(`the language model does not answer: ${messageOf(cause)}`, {
        code: "language_model_unreachable",
        subject: url,
        retryable: true,
        cause,
      });
    case "endpoint_refused":
      return new KbsyncError(`the language model refused the question: ${messageOf(cause)}`, {
        code: "language_model_refused",
        subject: url,
        hint: "Check kb.languageModel: the address, the model's name and the key file.",
        cause,
      });
    case "endpoint_answer":
      return unusable(url, "it is no JSON");
    case undefined:
    default:
      return cause;
  }
}

function unusable(url: string, why: string): KbsyncError {
  return new KbsyncError(`the language model's answer cannot be used: ${why}`, {
    code: "language_model_answer",
    subject: url,
  });
}
