import { isSpace, isWordBreak, skipSpace, wholeCharacterAfter, wordEnd } from "./characters.ts";
import { CHARACTER_COST } from "./costs.ts";
import type { Pieces, Sizes } from "./pieces.ts";
import { earliestBegin } from "./plan.ts";

/** State of the search for chunk starts. Searches only move forward, so their total time is linear. */
export interface Cursor {
  /** Start of the previous chunk; -1 before the first. */
  begin: number;
  /** First piece at or after the last search offset. */
  piece: number;
  /** First piece from there on that starts a sentence or block. */
  whole: number;
  /** No word starts after `wordFrom` and before `word`. */
  wordFrom: number;
  word: number;
}

/** Creates a cursor for a new text. */
export function newCursor(): Cursor {
  return { begin: -1, piece: 0, whole: 0, wordFrom: -1, word: -1 };
}

/**
 * Returns the start of the chunk whose first own piece is `index`: the start of a sentence or block within the overlap before it, or
 * its own start if there is none. A chunk that starts inside a sentence starts at a line or piece in the longer half of the
 * overlap, else at a word, else exactly `chunkOverlap` before the end of the previous chunk. Always after that chunk's start. Call
 * for ascending pieces.
 */
export function findBegin(text: string, pieces: Pieces, sizes: Sizes, index: number, cursor: Cursor): number {
  const begin = sharedBegin(text, pieces, sizes, index, cursor);
  cursor.begin = begin;
  return begin;
}

function sharedBegin(text: string, pieces: Pieces, sizes: Sizes, index: number, cursor: Cursor): number {
  const own = pieces.begins[index] ?? 0;
  const shared = index === 0 ? 0 : (pieces.ends[index - 1] ?? 0);
  const from = Math.max(earliestBegin(pieces, sizes, index), cursor.begin + 1);
  if (from >= shared) return own;

  while ((pieces.begins[cursor.piece] ?? own) < from) cursor.piece++;
  cursor.whole = Math.max(cursor.whole, cursor.piece);
  while (cursor.whole < index && pieces.inside[cursor.whole] === 1) cursor.whole++;
  let { whole } = cursor;
  // Takes the whole head of the block or nothing of it: the chunk repeats the head anyway.
  const frame = pieces.frames[pieces.blocks[index] ?? -1];
  if (frame !== undefined && whole > frame.first && whole < frame.body) whole = Math.min(frame.body, index);
  if (whole < index || pieces.inside[index] === 0) return pieces.begins[whole] ?? own;

  // A piece that starts inside a word is no better a start than any other character.
  const piece = pieces.costs[cursor.piece] === CHARACTER_COST ? own : (pieces.begins[cursor.piece] ?? own);
  if (piece <= from + ((shared - from) >> 1)) return piece;

  const word = nextWord(text, from, cursor);
  if (word < shared) return word;
  const exact = wholeCharacterAfter(text, from, shared);
  return exact < shared ? exact : own;
}

/** Returns the first offset from `from` on where a word starts. */
function nextWord(text: string, from: number, cursor: Cursor): number {
  if (from >= cursor.wordFrom && from <= cursor.word) return cursor.word;
  cursor.wordFrom = from;
  cursor.word = isWordBegin(text, from)
    ? from
    : skipSpace(text, wordEnd(text, from, text.length), text.length);
  return cursor.word;
}

function isWordBegin(text: string, at: number): boolean {
  const code = text.charCodeAt(at);
  if (isSpace(code)) return false;
  if (at === 0) return true;
  const before = text.charCodeAt(at - 1);
  return isSpace(before) || isWordBreak(before, code);
}
