import { hash } from "node:crypto";
import { setImmediate } from "node:timers/promises";
import type { ModelEmbedder } from "../../../src/kb/ingest/model.ts";

const DIMENSIONS = 64;

/**
 * The vector of a text's set of words: each sets one dimension, and all that are set are equal. The store keeps such
 * vectors without any loss, so that cosines can be compared to the last digit.
 */
export function wordSetVector(salt: string, text: string): Float32Array {
  const vector = new Float32Array(DIMENSIONS);
  for (const word of text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [""])
    vector[dimensionOf(`${salt} ${word}`)] = 1;
  const length = Math.hypot(...vector);
  return vector.map((value) => value / length);
}

/** An embedder of word sets. Documents wait while `gate` is closed; questions never do. */
export function wordSetEmbedder(salt: string, gate?: Promise<void>): ModelEmbedder {
  const shape = { fingerprint: `${salt}/64`, dimensions: DIMENSIONS, tokensMax: 10_000 };
  const { promise: closed, resolve: close } = Promise.withResolvers<void>();
  const embedWhen =
    (open: Promise<void> | undefined) => async (texts: readonly string[], signal?: AbortSignal) => {
      await Promise.race([open, closed]);
      // As many turns as the texts are long, so that calls overtake each other.
      for (let turns = texts.join("").length % 7; turns > 0; turns--) await setImmediate();
      signal?.throwIfAborted();
      return texts.map((text) => wordSetVector(salt, text));
    };
  return {
    ...shape,
    embed: embedWhen(gate),
    queries: { ...shape, embed: embedWhen(undefined), close: async () => undefined },
    close: async () => close(),
  };
}

const dimensions = new Map<string, number>();

function dimensionOf(word: string): number {
  const known = dimensions.get(word) ?? Number.parseInt(hash("sha256", word).slice(0, 6), 16) % DIMENSIONS;
  dimensions.set(word, known);
  return known;
}
