import { KbsyncError } from "../../../lib/failure.ts";
import type { ChatModel, ModelAnswer, ModelMessage } from "../../models/chat-model.ts";
import { ModelFailure } from "../../models/model-failure.ts";
import type { RetryLimits } from "../../models/retry.ts";

/**
 * A chat model as documents ask it: for text alone, and for the most likely answer with a fixed seed, so that the same
 * question gets the same answer as far as the model allows.
 */
export interface TextModel {
  /** As its service names it. */
  readonly name: string;
  /**
   * The answer in full. Throws a KbsyncError: `language_model_unreachable` (retryable) where nobody answers in time or the
   * service is busy, `language_model_refused` for what asking again does not change, `language_model_answer` for an
   * answer that was cut off, filtered or empty.
   */
  complete(messages: readonly ModelMessage[], signal: AbortSignal): Promise<string>;
}

/**
 * Nobody waits for a document as for an answer: a try that hangs is made again, where a question is not. Two minutes, for
 * a model on a machine without a graphics card takes its time; three of them, with the waits between.
 */
const LIMITS: RetryLimits = { attemptMs: 120_000, totalMs: 400_000 };
/** What makes an answer repeatable. Some models refuse one or the other; they are asked without from then on. */
const REPEATABLE = { temperature: 0, seed: 1 } as const;
type Repeatable = keyof typeof REPEATABLE;

/** Asks that model of the endpoint. */
export function openTextModel(chat: ChatModel, name: string, limits = LIMITS): TextModel {
  const refused = new Set<Repeatable>();

  const ask = async (messages: readonly ModelMessage[], signal: AbortSignal): Promise<ModelAnswer> => {
    const temperature = refused.has("temperature") ? undefined : REPEATABLE.temperature;
    const seed = refused.has("seed") ? {} : { seed: REPEATABLE.seed };
    try {
      return await chat.answer(
        { model: name, messages, temperature, ...seed, asJson: false },
        { signal, limits },
      );
    } catch (error) {
      if (!(error instanceof ModelFailure)) throw error;
      const named = (["temperature", "seed"] as const).find(
        (each) => !refused.has(each) && error.refuses(each),
      );
      if (named === undefined) throw failureOf(error);
      refused.add(named);
      return ask(messages, signal);
    }
  };

  return {
    name,
    complete: async (messages, signal) => textOf(await ask(messages, signal), name),
  };
}

/** The text of an answer that is whole. */
function textOf({ text, finish, problem }: ModelAnswer, name: string): string {
  switch (finish) {
    case "truncated":
      throw unusable(name, "it ended by length");
    case "content_filter":
      throw unusable(name, "it ended by content_filter");
    case "error":
      throw unusable(name, problem);
    case "completed":
  }
  if (text === "") throw unusable(name, "it is empty");
  return text;
}

function failureOf(cause: ModelFailure): KbsyncError {
  const facts = { subject: cause.subject ?? "", cause };
  switch (cause.kind) {
    case "unreachable":
      return new KbsyncError(`the language model does not answer: ${cause.message}`, {
        ...facts,
        code: "language_model_unreachable",
        retryable: true,
      });
    case "refused":
      return new KbsyncError(`the language model refused the question: ${cause.message}`, {
        ...facts,
        code: "language_model_refused",
        hint: "Check kb.languageModel: the address, the model's name and the key file.",
      });
    case "unusable":
      return unusable(cause.subject ?? "", cause.message);
  }
}

function unusable(name: string, why: string): KbsyncError {
  return new KbsyncError(`the language model's answer cannot be used: ${why}`, {
    code: "language_model_answer",
    subject: name,
  });
}
