import { isSpace, isWordBreak, skipSpace, wholeCharacterAfter, wordEnd } from "./characters.ts";
import type { Pieces, Sizes } from "./pieces.ts";
import { earliestBegin } from "./plan.ts";

/** Where the search for chunk begins stands: both searches only move forward, so all of them together are linear. */
export interface Cursor {
  /** Begin of the chunk before; -1 before the first. */
  begin: number;
  /** First piece that does not begin before the last place searched from. */
  piece: number;
  /** The first one from there on that begins a sentence or block. */
  whole: number;
  /** No word begins after `wordFrom` and before `word`. */
  wordFrom: number;
  word: number;
}

/** A cursor for a new text. */
export function newCursor(): Cursor {
  return { begin: -1, piece: 0, whole: 0, wordFrom: -1, word: -1 };
}

/**
 * Where the chunk whose first own piece is `index` begins: within the overlap before it, at the begin of a sentence or
 * block; where there is none, at its own begin. A chunk that itself begins in the middle of a sentence begins at a line or
 * piece in the longer half of the overlap, else at a word, else exactly `chunkOverlap` before the end of the chunk before.
 * Always behind that chunk's begin. Called for ascending pieces.
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
  // Of the block's own head it takes all or nothing: the head is repeated anyway.
  const frame = pieces.frames[pieces.blocks[index] ?? -1];
  if (frame !== undefined && whole > frame.first && whole < frame.body) whole = Math.min(frame.body, index);
  if (whole < index || pieces.inside[index] === 0) return pieces.begins[whole] ?? own;

  const piece = pieces.begins[cursor.piece] ?? own;
  if (piece <= from + ((shared - from) >> 1)) return piece;

  const word = nextWord(text, from, cursor);
  if (word < shared) return word;
  const exact = wholeCharacterAfter(text, from, shared);
  return exact < shared ? exact : own;
}

/** The first place at or after `from` where a word begins. */
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
