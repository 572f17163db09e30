import type { KnowledgeBase } from "./knowledge-base.ts";

type QueryEmbedder = ReturnType<KnowledgeBase["modelTurns"]["queries"]>;

/** The vectors of one question, which several searches use. */
export interface QuestionVectors {
  /** Makes an embedder ask its model once. Expects calls with the question alone. A failure is not remembered. */
  readonly once: (embedder: QueryEmbedder) => QueryEmbedder;
  /** Time that calls so far would have taken more without this, so that searches can be compared. */
  savedMs(): number;
}

export function openQuestionVectors(nowMs: () => number): QuestionVectors {
  const made = new Map<string, { readonly vectors: Float32Array[]; readonly ms: number }>();
  let savedMs = 0;
  return {
    once: (embedder) => ({
      ...embedder,
      embed: async (texts, signal) => {
        const known = made.get(embedder.fingerprint);
        if (known !== undefined) {
          savedMs += known.ms;
          return known.vectors;
        }
        const startMs = nowMs();
        const vectors = await embedder.embed(texts, signal);
        made.set(embedder.fingerprint, { vectors, ms: nowMs() - startMs });
        return vectors;
      },
    }),
    savedMs: () => savedMs,
  };
}
