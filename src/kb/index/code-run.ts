import { DamagedIndex, seal, unseal } from "./seal.ts";

/** Codes of consecutive chunks of a scope, as they are stored. They belong to one mean. */
export interface CodeRun {
  /** Rows of the chunks, less the first row of the run; ascending. */
  readonly offsets: Uint32Array;
  /** The code of each chunk, all of one length. */
  readonly codes: Uint32Array;
}

const WORD_BYTES = Uint32Array.BYTES_PER_ELEMENT;

/** Packs a run: its offsets, its codes and a checksum. */
export function packRun({ offsets, codes }: CodeRun): Buffer {
  return seal(Buffer.concat([bytesOf(offsets), bytesOf(codes)]));
}

/** Unpacks a run whose codes have so many words of 32 bits each. Throws `DamagedIndex`. */
export function unpackRun(sealed: Buffer, words: number): CodeRun {
  const bytes = unseal(sealed, "a run of codes");
  const rows = bytes.length / (WORD_BYTES * (1 + words));
  if (!Number.isInteger(rows)) throw new DamagedIndex("a run of codes has another length than its codes");
  // A view of words must begin at a multiple of four bytes.
  const values = new Uint32Array(bytes.length / WORD_BYTES);
  new Uint8Array(values.buffer).set(bytes);
  return { offsets: values.subarray(0, rows), codes: values.subarray(rows) };
}

/** Returns the bytes of words, as a view. */
export function bytesOf(values: Uint32Array): Uint8Array {
  return new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
}
