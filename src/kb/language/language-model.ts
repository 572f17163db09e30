/** One thing to be answered. */
export interface Completion {
  /** What the model is and how it is to answer. */
  readonly system: string;
  /** The conversation so far, in turns, ending with the user's. */
  readonly turns: readonly Turn[];
}

export interface Turn {
  readonly role: "user" | "assistant";
  readonly text: string;
}

/**
 * A model that answers text with text. It is asked for the most likely answer with a fixed seed: the same question gives
 * the same answer as far as the model allows.
 */
export interface LanguageModel {
  /** As its service names it. */
  readonly name: string;
  /**
   * The answer in full. Throws a KbsyncError: `language_model_unreachable` (retryable) where nobody answers in time or the
   * service is busy, `language_model_refused` for what asking again does not change, `language_model_answer` for an
   * answer that was cut off, filtered or empty.
   */
  complete(completion: Completion, signal?: AbortSignal): Promise<string>;
  close(): Promise<void>;
}
