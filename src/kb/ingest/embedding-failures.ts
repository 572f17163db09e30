import { embeddingText } from "../embed/embedding-text.ts";
import type { Embedder } from "../embed/embedder.ts";
import type { RowContext, RowVector } from "../store/records.ts";

/** Chunks handed to the model at a time: what is being created meanwhile waits for no more than these. */
const STEP = 4;
/** Times a chunk is tried before it is left: once beside others, then alone. */
const TRIES_MAX = 3;
/** Chunks remembered as failing; with more it is not the texts. */
const REMEMBERED_MAX = 10_000;
/** A text that every model embeds: where it fails, the model is to blame. */
export const PROBE = "A plain sentence.";

/**
 * Embeds chunks some of which a model may fail on every time: one is suspected when the call it was in failed, tried alone
 * after all others, and left when it failed while the model worked otherwise.
 */
export interface EmbeddingFailures {
  isSuspected(this: void, row: number): boolean;
  isLeft(this: void, row: number): boolean;
  /** Rows left for good: until the process ends. */
  left(): readonly number[];
  /** Vectors of chunks none of which is suspected. When it throws, those of the failed call are. */
  embed(embedder: Embedder, chunks: readonly RowContext[], signal: AbortSignal): Promise<RowVector[]>;
  /** The vector of a suspected chunk; undefined where it failed though the model works. Throws where the model does not. */
  embedAlone(embedder: Embedder, chunk: RowContext): Promise<RowVector | undefined>;
}

/** Nothing is suspected at first. */
export function openEmbeddingFailures(): EmbeddingFailures {
  const tries = new Map<number, number>();
  const count = (row: number): void => {
    if (tries.size < REMEMBERED_MAX || tries.has(row)) tries.set(row, (tries.get(row) ?? 0) + 1);
  };
  // Without a signal: a model must not be closed in the middle of a call, and a call is short.
  const vectorsOf = async (embedder: Embedder, chunks: readonly RowContext[]): Promise<RowVector[]> => {
    const vectors = await embedder.embed(chunks.map(embeddingText));
    return chunks.map(({ row, staleSince }, at) => {
      const vector = vectors[at];
      if (vector === undefined) throw new Error(`${vectors.length} vectors for ${chunks.length} texts`);
      return { row, vector, staleSince };
    });
  };

  return {
    isSuspected: (row) => tries.has(row),
    isLeft: (row) => (tries.get(row) ?? 0) >= TRIES_MAX,
    left: () => [...tries].flatMap(([row, times]) => (times >= TRIES_MAX ? row : [])),
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
        tries.delete(chunk.row);
        return pair;
      } catch {
        await embedder.embed([PROBE]);
        count(chunk.row);
        return undefined;
      }
    },
  };
}
