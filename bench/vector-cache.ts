/** Vectors kept from one run of a benchmark to the next, in the temporary folder. */
import { createHash } from "node:crypto";
import { appendFileSync, existsSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Embedder } from "../src/kb/embed/embedder.ts";

/** Bytes of SHA-256 that name a text. */
const KEY_BYTES = 16;
/** Texts embedded before they are written down: what a broken-off run loses. */
const STEP = 64;

/** The same embedder; what it was once asked it does not ask the model again. One file a fingerprint. */
export function withVectorCache(embedder: Embedder): Embedder {
  const { fingerprint, dimensions } = embedder;
  const name = createHash("sha256").update(fingerprint).digest("hex").slice(0, 16);
  const path = join(tmpdir(), `kbsync-bench-vectors-${name}.bin`);
  const known = readKnown(path, dimensions);
  const keyOf = (text: string): string =>
    createHash("sha256")
      .update(text)
      .digest("hex")
      .slice(0, KEY_BYTES * 2);

  const learn = async (texts: readonly string[]): Promise<void> => {
    const vectors = await embedder.embed(texts);
    const records = texts.map((text, at) => {
      const vector = vectors[at] ?? new Float32Array(dimensions);
      known.set(keyOf(text), vector);
      const bytes = Buffer.from(vector.buffer, vector.byteOffset, vector.byteLength);
      return Buffer.concat([Buffer.from(keyOf(text), "hex"), bytes]);
    });
    appendFileSync(path, Buffer.concat(records));
  };

  return {
    ...embedder,
    embed: async (texts) => {
      const unknown = [...new Set(texts.filter((text) => !known.has(keyOf(text))))];
      for (let at = 0; at < unknown.length; at += STEP) await learn(unknown.slice(at, at + STEP));
      return texts.map((text) => known.get(keyOf(text)) ?? new Float32Array(dimensions));
    },
    close: () => embedder.close(),
  };
}

/** A record that a killed run left half written ends the file. */
function readKnown(path: string, dimensions: number): Map<string, Float32Array> {
  const known = new Map<string, Float32Array>();
  if (!existsSync(path)) return known;
  const bytes = readFileSync(path);
  const size = KEY_BYTES + dimensions * 4;
  for (let at = 0; at + size <= bytes.length; at += size) {
    const vector = new Float32Array(Uint8Array.from(bytes.subarray(at + KEY_BYTES, at + size)).buffer);
    known.set(bytes.toString("hex", at, at + KEY_BYTES), vector);
  }
  return known;
}
