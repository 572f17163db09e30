import { hash } from "node:crypto";
import { setImmediate } from "node:timers/promises";
import type { ModelEmbedder } from "../../../src/kb/ingest/model.ts";

const DIMENSIONS = 64;

/**
 * Returns the vector of a text's set of words: each word sets one dimension, and all set dimensions are equal. The store
 * rounds only the scale of such a vector, so cosines differ from the exact ones by less than 1e-7.
 *
 * The number of set dimensions is never a multiple of five. The cosine of two texts with n and m dimensions, k of them
 * shared, is k / √(n × m), so it is never exactly 0.2, and neither is the blend of two (no denominator has a factor of
 * five). At that cosine a chunk without a matching word counts as unrelated,
 * and rounding would decide whether a search returns it: the query "of" and a chunk of 25 words met there.
 */
export function wordSetVector(salt: string, text: string): Float32Array {
  const vector = new Float32Array(DIMENSIONS);
  for (const word of text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [""])
    vector[dimensionOf(`${salt} ${word}`)] = 1;
  if (vector.filter((value) => value === 1).length % 5 === 0) vector[vector.indexOf(0)] = 1;
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
