import { hash } from "node:crypto";
import { setImmediate } from "node:timers/promises";
import { KbsyncError } from "../../src/lib/failure.ts";
import type { Embedder } from "../../src/kb/embed/embedder.ts";

const DIMENSIONS = 64;
const TOKENS_MAX = 256;

/**
 * A small honest embedder for tests of what stands around one: each word adds to one dimension, so texts that share
 * words are near. Passes the embedder contract.
 */
export function hashedEmbedder(fingerprint = "hashed/64"): Embedder {
  const embed = (text: string): Float32Array => {
    const words = text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [];
    const vector = new Float32Array(DIMENSIONS);
    for (const word of words.slice(0, TOKENS_MAX)) {
      const at = Number.parseInt(hash("sha256", word).slice(0, 6), 16) % DIMENSIONS;
      vector[at] = (vector[at] ?? 0) + 1;
    }
    if (words.length === 0) vector[0] = 1;
    const length = Math.hypot(...vector);
    return vector.map((value) => value / length);
  };
  let closed = false;
  return {
    fingerprint,
    dimensions: DIMENSIONS,
    tokensMax: TOKENS_MAX,
    embed: async (texts, signal) => {
      const vectors: Float32Array[] = [];
      const check = (): void => {
        signal?.throwIfAborted();
        if (closed) throw new KbsyncError("the embedder is closed", { code: "closed" });
      };
      check();
      for (const text of texts) {
        vectors.push(embed(text));
        await setImmediate();
        check();
      }
      return vectors;
    },
    close: async () => {
      closed = true;
    },
  };
}
