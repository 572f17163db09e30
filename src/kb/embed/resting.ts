import { codeOf, KbsyncError } from "../../lib/failure.ts";
import type { Embedder } from "./embedder.ts";

/** Code of a call that was not made, because the model failed just before. It says nothing new of the model. */
export const EMBEDDING_RESTING = "embedding_resting";

/** How long a model is left alone, by which clock. */
export interface Rest {
  readonly restMs: number;
  readonly nowMs: () => number;
}

/**
 * The embedder, left alone for a while after each failure: its calls throw `embedding_resting` at once then, so that a
 * question is answered from words instead of waiting for a model that does not answer, one after another. A refusal
 * (`embedding_refused`) comes at once and may be of one text alone: it brings no rest, nor does a call that was given up.
 */
export function restingEmbedder(embedder: Embedder, { restMs, nowMs }: Rest): Embedder {
  let restUntilMs = Number.NEGATIVE_INFINITY;
  return {
    ...embedder,
    embed: async (texts, signal) => {
      if (nowMs() < restUntilMs) {
        throw new KbsyncError("the embedding model failed just before and is left alone for a while", {
          code: EMBEDDING_RESTING,
          retryable: true,
        });
      }
      try {
        return await embedder.embed(texts, signal);
      } catch (error) {
        const isFailure = signal?.aborted !== true && codeOf(error) !== "embedding_refused";
        if (isFailure) restUntilMs = nowMs() + restMs;
        throw error;
      }
    },
  };
}
