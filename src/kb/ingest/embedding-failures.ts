import { embeddingText } from "../embed/embedding-text.ts";
import type { Embedder } from "../embed/embedder.ts";
import type { ModelEmbedder } from "./model.ts";
import type { ChunkRef } from "../store/chunks.ts";
import type { ChunkContext, ChunkVector } from "../store/search-index.ts";

/** Chunks per call of a local model, which pauses between calls while texts are taken in. */
const LOCAL_STEP = 4;
/** Chunks per call of a remote one, whose answer takes as long for one as for many. */
const REMOTE_STEP = 32;
/** Attempts before a chunk is given up: once among others, then alone. */
const ATTEMPTS_MAX = 3;
/** Bound on tracked chunks. If more fail, the cause is not the texts. */
const TRACKED_MAX = 10_000;
/** A text that every model can embed: if it fails, the model is the cause. */
export const PROBE = "A plain sentence.";

/**
 * Embeds chunks, some of which may crash the model every time. Suspects every chunk of a failed call, retries suspects alone
 * after all others, and gives up a chunk that fails while the model otherwise works.
 */
export interface EmbeddingFailures {
  isSuspected(this: void, ref: ChunkRef): boolean;
  isGivenUp(this: void, ref: ChunkRef): boolean;
  /** Chunks given up until the process ends. */
  givenUp(): readonly ChunkRef[];
  /**
   * Embeds chunks that are not suspected; calls `ready` before each call of the model. If the model throws, the chunks of the call become
   * suspects.
   */
  embed(
    embedder: ModelEmbedder,
    chunks: readonly ChunkContext[],
    ready: () => Promise<void>,
  ): Promise<ChunkVector[]>;
  /** Embeds a suspected chunk. Returns undefined if only the chunk fails; throws if the model fails. */
  embedAlone(embedder: Embedder, chunk: ChunkContext): Promise<ChunkVector | undefined>;
}

/** Starts without suspects. */
export function openEmbeddingFailures(): EmbeddingFailures {
  const attempts = new Map<ChunkRef, number>();
  const count = (ref: ChunkRef): void => {
    if (attempts.size < TRACKED_MAX || attempts.has(ref)) attempts.set(ref, (attempts.get(ref) ?? 0) + 1);
  };
  // Passes no signal: a call is short, and the model must not be closed during one.
  const vectorsOf = async (embedder: Embedder, chunks: readonly ChunkContext[]): Promise<ChunkVector[]> => {
    const vectors = await embedder.embed(chunks.map(embeddingText));
    return chunks.map(({ ref, staleSince }, at) => {
      const vector = vectors[at];
      if (vector === undefined) throw new Error(`${vectors.length} vectors for ${chunks.length} texts`);
      return { ref, vector, staleSince };
    });
  };

  return {
    isSuspected: (ref) => attempts.has(ref),
    isGivenUp: (ref) => (attempts.get(ref) ?? 0) >= ATTEMPTS_MAX,
    givenUp: () => [...attempts].flatMap(([ref, times]) => (times >= ATTEMPTS_MAX ? ref : [])),
    embed: async (embedder, chunks, ready) => {
      const pairs: ChunkVector[] = [];
      const size = embedder.kind === "local" ? LOCAL_STEP : REMOTE_STEP;
      for (let at = 0; at < chunks.length; at += size) {
        await ready();
        const step = chunks.slice(at, at + size);
        try {
          pairs.push(...(await vectorsOf(embedder, step)));
        } catch (error) {
          for (const { ref } of step) count(ref);
          throw error;
        }
      }
      return pairs;
    },
    embedAlone: async (embedder, chunk) => {
      try {
        const [pair] = await vectorsOf(embedder, [chunk]);
        attempts.delete(chunk.ref);
        return pair;
      } catch {
        await embedder.embed([PROBE]);
        count(chunk.ref);
        return undefined;
      }
    },
  };
}
