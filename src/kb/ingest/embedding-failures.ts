import { embeddingText } from "../embed/embedding-text.ts";
import type { Embedder } from "../embed/embedder.ts";
import type { RowContext, RowVector } from "../store/records.ts";

/** Chunks per call of the model: a document that is being created waits for no more than these. */
const STEP = 4;
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
  isSuspected(this: void, row: number): boolean;
  isGivenUp(this: void, row: number): boolean;
  /** Rows given up until the process ends. */
  givenUp(): readonly number[];
  /** Embeds chunks that are not suspected. If it throws, the chunks of the failed call become suspects. */
  embed(embedder: Embedder, chunks: readonly RowContext[], signal: AbortSignal): Promise<RowVector[]>;
  /** Embeds a suspected chunk. Returns undefined if only the chunk fails; throws if the model fails. */
  embedAlone(embedder: Embedder, chunk: RowContext): Promise<RowVector | undefined>;
}

/** Starts without suspects. */
export function openEmbeddingFailures(): EmbeddingFailures {
  const attempts = new Map<number, number>();
  const count = (row: number): void => {
    if (attempts.size < TRACKED_MAX || attempts.has(row)) attempts.set(row, (attempts.get(row) ?? 0) + 1);
  };
  // Passes no signal: a call is short, and the model must not be closed during one.
  const vectorsOf = async (embedder: Embedder, chunks: readonly RowContext[]): Promise<RowVector[]> => {
    const vectors = await embedder.embed(chunks.map(embeddingText));
    return chunks.map(({ row, staleSince }, at) => {
      const vector = vectors[at];
      if (vector === undefined) throw new Error(`${vectors.length} vectors for ${chunks.length} texts`);
      return { row, vector, staleSince };
    });
  };

  return {
    isSuspected: (row) => attempts.has(row),
    isGivenUp: (row) => (attempts.get(row) ?? 0) >= ATTEMPTS_MAX,
    givenUp: () => [...attempts].flatMap(([row, times]) => (times >= ATTEMPTS_MAX ? row : [])),
    embed: async (embedder, chunks, signal) => {
      const pairs: RowVector[] = [];
      for (let at = 0; at < chunks.length; at += STEP) {
        signal.throwIfAborted();
        const step = chunks.slice(at, at + STEP);
        try {
          pairs.push(...(await vectorsOf(embedder, step)));
        } catch (error) {
          for (const { row } of step) count(row);
          throw error;
        }
      }
      return pairs;
    },
    embedAlone: async (embedder, chunk) => {
      try {
        const [pair] = await vectorsOf(embedder, [chunk]);
        attempts.delete(chunk.row);
        return pair;
      } catch {
        await embedder.embed([PROBE]);
        count(chunk.row);
        return undefined;
      }
    },
  };
}
