import { KbsyncError } from "../../../lib/failure.ts";
import type { ChatModel, ModelAnswer, ModelMessage } from "../../models/chat-model.ts";
import { ModelFailure } from "../../models/model-failure.ts";
import type { RetryLimits } from "../../models/retry.ts";

/**
 * A chat model for documents: text only, temperature 0 and a fixed seed, so that the same question gets the same answer as far as
 * the model allows.
 */
export interface TextModel {
  /** Name of the model at its service. */
  readonly name: string;
  /**
   * Returns the complete answer. Throws a KbsyncError: `language_model_unreachable` (retryable) if the service does not answer in
   * time or is busy, `language_model_refused` if a retry cannot help, `language_model_answer` for a truncated, filtered or empty
   * answer.
   */
  complete(messages: readonly ModelMessage[], signal: AbortSignal): Promise<string>;
}

/**
 * Documents can wait, unlike questions, so a hanging attempt is retried. Two minutes per attempt suit a model without a GPU; the
 * total allows three attempts with their waits.
 */
const LIMITS: RetryLimits = { attemptMs: 120_000, totalMs: 400_000 };
/** Parameters for repeatable answers. If a model refuses one, later requests omit it. */
const REPEATABLE = { temperature: 0, seed: 1 } as const;
type Repeatable = keyof typeof REPEATABLE;

/** Opens the model `name` of an endpoint. */
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

/** Returns the text of a complete answer. */
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
