import { hash } from "node:crypto";

/** Vectors that are remembered: 1.5 KB each with 384 dimensions, 6 MB together. */
const REMEMBERED_MAX = 4096;

type Embed = (texts: readonly string[], signal?: AbortSignal) => Promise<Float32Array[]>;

/**
 * Returns the same function, which asks the model once for equal texts of a call and for those of recent calls: copies of a file, a
 * licence in each of many, a document that is created again. Equal texts share a vector, which nobody may change.
 */
export function withRecentVectors(embed: Embed, max: number = REMEMBERED_MAX): Embed {
  const recent = new Map<string, Float32Array>();
  return async (texts, signal) => {
    const keys = texts.map((text) => hash("sha256", text, "base64"));
    const vectors = new Map<string, Float32Array>();
    const missing = new Map<string, string>();
    for (const [at, key] of keys.entries()) {
      const known = recent.get(key);
      if (known === undefined) missing.set(key, texts[at] ?? "");
      else vectors.set(key, known);
    }
    const made = await embed([...missing.values()], signal);
    for (const [at, key] of [...missing.keys()].entries()) {
      const vector = made[at];
      if (vector !== undefined) vectors.set(key, vector);
    }
    for (const [key, vector] of vectors) {
      // The least recently used is the first one.
      recent.delete(key);
      recent.set(key, vector);
    }
    for (const key of recent.keys()) {
      if (recent.size <= max) break;
      recent.delete(key);
    }
    return keys.map((key, at) => {
      const vector = vectors.get(key);
      if (vector === undefined) throw new Error(`text ${at} of ${keys.length} has no vector`);
      return vector;
    });
  };
}
