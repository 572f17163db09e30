import { openByteBlock } from "../../lib/byte-block.ts";
import { Refusal } from "../resources/refusal.ts";

const NEWLINE = 0x0a;

/** A line of a body. */
export interface Line {
  /** From 1; blank lines count and are left out. */
  readonly number: number;
  /** Without its end; undefined for one that is too long, of which nothing was kept. */
  readonly bytes: Buffer | undefined;
}

/**
 * Splits a stream into lines, keeping no more than one of them. Throws `body_too_large` once the stream is longer than
 * `bytesMax`, and what the stream throws.
 */
export async function* linesOf(
  stream: AsyncIterable<Buffer>,
  lineBytesMax: number,
  bytesMax: number,
): AsyncGenerator<Line> {
  const block = openByteBlock(lineBytesMax);
  let number = 0;
  let total = 0;

  const end = (): Line | undefined => {
    number += 1;
    const bytes = block.take();
    return bytes !== undefined && isBlank(bytes) ? undefined : { number, bytes };
  };

  for await (const piece of stream) {
    total += piece.length;
    if (total > bytesMax) {
      throw new Refusal("body_too_large", `The body: expected at most ${bytesMax} bytes.`, {
        hint: "Send the rest in another request.",
      });
    }
    let from = 0;
    for (let at = piece.indexOf(NEWLINE); at !== -1; at = piece.indexOf(NEWLINE, from)) {
      block.add(piece.subarray(from, at));
      from = at + 1;
      const line = end();
      if (line !== undefined) yield line;
    }
    if (from < piece.length) block.add(piece.subarray(from));
  }
  const last = block.addedBytes() === 0 ? undefined : end();
  if (last !== undefined) yield last;
}

function isBlank(bytes: Buffer): boolean {
  return bytes.every((byte) => byte === 0x20 || byte === 0x09 || byte === 0x0d);
}
