import { KbsyncError } from "../../../lib/failure.ts";
import type { ChatModel, ModelAnswer, ModelMessage } from "../../models/chat-model.ts";
import { ModelFailure } from "../../models/model-failure.ts";
import type { RetryLimits } from "../../models/retry.ts";

/** A chat model for documents: text only. */
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
/** Opens the model `name` of an endpoint. */
export function openTextModel(chat: ChatModel, name: string, limits = LIMITS): TextModel {
  return {
    name,
    complete: async (messages, signal) => {
      try {
        return textOf(await chat.answer({ model: name, messages, asJson: false }, { signal, limits }), name);
      } catch (error) {
        throw error instanceof ModelFailure ? failureOf(error) : error;
      }
    },
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
