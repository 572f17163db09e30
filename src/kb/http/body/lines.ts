import { openByteBlock } from "../../../lib/byte-block.ts";
import { Refusal } from "../../resources/refusal.ts";

const NEWLINE = 0x0a;
/** Longest line that is checked for being blank. A longer one is passed on, and parsed off the event loop. */
const BLANK_BYTES_MAX = 1024;
/** Maximum blank lines in a row. More would be read without a turn of the event loop, for nothing. */
const BLANK_LINES_MAX = 1000;

/** A line of a body. */
export interface Line {
  /** From 1. Blank lines count, but are left out. */
  readonly number: number;
  /** Without the line break; undefined if the line is too long. */
  readonly bytes: Buffer | undefined;
}

/** Counts the bytes of lines in memory, from their arrival until the line is dropped here or released by the caller. */
export interface LineMemory {
  hold(bytes: number): void;
  release(bytes: number): void;
}

/**
 * Splits a stream into lines, with at most one line in memory. Throws `body_too_large` if the stream is longer than
 * `bytesMax`, `invalid_body` after too many blank lines in a row, and whatever the stream and `memory.hold` throw.
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
    // The line is too long, so the block has dropped it.
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
