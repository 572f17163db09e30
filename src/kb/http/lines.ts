import { openByteBlock } from "../../lib/byte-block.ts";
import { Refusal } from "../resources/refusal.ts";

const NEWLINE = 0x0a;
/** Longest line that is looked at for being blank. A longer one is passed on, to whoever looks at lines off the event loop. */
const BLANK_BYTES_MAX = 1024;
/** Blank lines in a row that are left out. More would be read without a turn of the event loop, for nothing. */
const BLANK_LINES_MAX = 1000;

/** A line of a body. */
export interface Line {
  /** From 1; blank lines count and are left out. */
  readonly number: number;
  /** Without its end; undefined for one that is too long, of which nothing was kept. */
  readonly bytes: Buffer | undefined;
}

/** Counts the bytes of lines: each from when it comes until its line is dropped here, or done with by the caller. */
export interface LineMemory {
  hold(bytes: number): void;
  release(bytes: number): void;
}

/**
 * Splits a stream into lines, keeping no more than one of them. Throws `body_too_large` once the stream is longer than
 * `bytesMax`, `invalid_body` after too many blank lines in a row, and what the stream and `memory.hold` throw.
 */
export async function* linesOf(
  stream: AsyncIterable<Buffer>,
  lineBytesMax: number,
  bytesMax: number,
  memory: LineMemory = { hold: () => undefined, release: () => undefined },
): AsyncGenerator<Line> {
  const block = openByteBlock(lineBytesMax);
  let number = 0;
  let total = 0;
  let blankLines = 0;

  const end = (): Line | undefined => {
    number += 1;
    const bytes = block.take();
    if (bytes === undefined || !isBlank(bytes)) {
      blankLines = 0;
      return { number, bytes };
    }
    memory.release(bytes.length);
    blankLines += 1;
    if (blankLines > BLANK_LINES_MAX)
      throw new Refusal(
        "invalid_body",
        `The body: more than ${BLANK_LINES_MAX} of its lines in a row are blank.`,
      );
    return undefined;
  };
  const add = (part: Buffer): void => {
    const before = block.addedBytes();
    if (before > lineBytesMax) return block.add(part);
    memory.hold(part.length);
    block.add(part);
    // Too long: nothing of it is kept any more.
    if (block.addedBytes() > lineBytesMax) memory.release(before + part.length);
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
      add(piece.subarray(from, at));
      from = at + 1;
      const line = end();
      if (line !== undefined) yield line;
    }
    if (from < piece.length) add(piece.subarray(from));
  }
  const last = block.addedBytes() === 0 ? undefined : end();
  if (last !== undefined) yield last;
}

function isBlank(bytes: Buffer): boolean {
  return (
    bytes.length <= BLANK_BYTES_MAX && bytes.every((byte) => byte === 0x20 || byte === 0x09 || byte === 0x0d)
  );
}
