import { codeOf, KbsyncError } from "../../lib/failure.ts";
import type { Embedder } from "./embedder.ts";

/** Error code of a call during the cooldown. Such a call never reaches the model. */
export const EMBEDDING_RESTING = "embedding_resting";

/** Length and clock of a cooldown. */
export interface Cooldown {
  readonly cooldownMs: number;
  readonly nowMs: () => number;
}

/**
 * Adds a cooldown after each failure, during which calls throw `embedding_resting` at once. So searches fall back to words
 * instead of each waiting for a model that does not answer. A refusal (`embedding_refused`) starts no cooldown, because it is
 * immediate and may concern one text; neither does an aborted call.
 */
export function withCooldown(embedder: Embedder, { cooldownMs, nowMs }: Cooldown): Embedder {
  let cooldownUntilMs = Number.NEGATIVE_INFINITY;
  return {
    ...embedder,
    embed: async (texts, signal) => {
      if (nowMs() < cooldownUntilMs) {
        throw new KbsyncError("the embedding model failed a moment ago and is not called for a while", {
          code: EMBEDDING_RESTING,
          retryable: true,
        });
      }
      try {
        return await embedder.embed(texts, signal);
      } catch (error) {
        const isFailure = signal?.aborted !== true && codeOf(error) !== "embedding_refused";
        if (isFailure) cooldownUntilMs = nowMs() + cooldownMs;
        throw error;
      }
    },
  };
}
