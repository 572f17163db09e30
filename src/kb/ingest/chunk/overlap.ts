import { isSpace, isWordBreak, skipSpace, wholeCharacterAfter, wordEnd } from "./characters.ts";
import type { Pieces, Sizes } from "./pieces.ts";
import { earliestBegin } from "./plan.ts";

/** Where the search for chunk begins stands: both searches only move forward, so all of them together are linear. */
export interface Cursor {
  /** Begin of the chunk before; -1 before the first. */
  begin: number;
  /** First piece that does not begin before the last place searched from. */
  piece: number;
  /** No word begins after `wordFrom` and before `word`. */
  wordFrom: number;
  word: number;
}

/** A cursor for a new text. */
export function newCursor(): Cursor {
  return { begin: -1, piece: 0, wordFrom: -1, word: -1 };
}

/**
 * Where the chunk whose first own piece is `index` begins: within the overlap before it, at the begin of a sentence
 * or line if one lies in the longer half, else of a word, else exactly `chunkOverlap` before the end of the chunk
 * before. Always behind that chunk's begin. Called for ascending pieces.
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
