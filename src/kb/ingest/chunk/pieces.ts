import { skipSpace, wholeCharacterBefore, wordEnd } from "./characters.ts";
import { CHARACTER_COST, CLAUSE_COST, DOUBTFUL_SENTENCE_COST, SENTENCE_COST, WORD_COST } from "./costs.ts";
import { nextSentenceEnd } from "./sentences.ts";
import type { Stops } from "./sentences.ts";

/**
 * The smallest parts of a text that chunks consist of, as parallel arrays. Pieces are ascending and do not overlap; each contains a
 * character other than white space, and together they contain all of these. `costs[i]` is the cost of a cut before piece i.
 */
export interface Pieces {
  readonly begins: number[];
  readonly ends: number[];
  readonly costs: number[];
  /** Smallest offset from which a chunk that starts with piece i may share text: no heading or fence is in between. */
  readonly floors: number[];
  /** 1 if a piece starts inside a sentence. */
  readonly inside: number[];
  /** The block of piece i as an index into `frames`; -1 for none. */
  readonly blocks: number[];
  /** The part of a split block that chunks repeat. */
  readonly frames: Frame[];
  /** The properties of the next piece. */
  readonly next: NextPiece;
}

/** The lines that each chunk with a part of a table or code block repeats, so that it can be read alone. */
export interface Frame {
  /** First piece of the block, and first piece after the repeated head: a table's third row, the line after a fence. */
  readonly first: number;
  readonly body: number;
  /** Last piece of the block; Infinity while it is open, and if it never ends. */
  last: number;
  /** The head of a table, or the opening fence; ends with a line break. */
  readonly before: string;
  /** The closing fence after a line break; empty for a table. */
  readonly after: string;
}

/** State of the reader that the next pieces inherit. */
export interface NextPiece {
  floor: number;
  /** Whether the floor is the next piece's own start. */
  isFloor: boolean;
  inside: 0 | 1;
  block: number;
}

/** Returns empty pieces. */
export function newPieces(): Pieces {
  return {
    begins: [],
    ends: [],
    costs: [],
    floors: [],
    inside: [],
    blocks: [],
    frames: [],
    next: { floor: 0, isFloor: false, inside: 0, block: -1 },
  };
}

/** Returns what a chunk that starts with a piece repeats before it. */
export function beforePiece({ blocks, frames }: Pieces, piece: number): string {
  const frame = frames[blocks[piece] ?? -1];
  return frame !== undefined && piece >= frame.body ? frame.before : "";
}

/** Returns what a chunk that ends with a piece repeats after it. */
export function afterPiece({ blocks, frames }: Pieces, piece: number): string {
  const frame = frames[blocks[piece] ?? -1];
  return frame !== undefined && piece < frame.last ? frame.after : "";
}

/** A text that is being split: the input of `addWhole` and `addSentences`, and the pieces that they add to. */
export interface Cutting {
  readonly text: string;
  readonly sizes: Sizes;
  readonly stops: Stops;
  readonly pieces: Pieces;
}

/** Sizes derived from a resource's settings, in UTF-16 units. */
export interface Sizes {
  /** Longest chunk. */
  readonly chunk: number;
  readonly overlap: number;
  /** Size of a chunk without a full overlap: the longest block that stays whole. */
  readonly room: number;
  /** Target length of a piece that consists of words. */
  readonly grain: number;
  /** A shorter sentence stays with the next one. */
  readonly sentenceMin: number;
}

/** Derives the sizes. The caller ensures `chunkOverlap < chunkSize`. */
export function sizesOf(chunkSize: number, chunkOverlap: number): Sizes {
  const room = chunkSize - chunkOverlap;
  return {
    chunk: chunkSize,
    overlap: chunkOverlap,
    room,
    grain: Math.max(1, Math.min(room, chunkSize >> 3)),
    sentenceMin: chunkSize >> 5,
  };
}

/** Adds `[begin, end)` as one piece, or as several pieces of words if it is longer than `limit`. */
export function addWhole(cutting: Cutting, begin: number, end: number, cost: number, limit: number): void {
  if (end - begin <= limit) push(cutting.pieces, begin, end, cost);
  else addWords(cutting, begin, end, cost);
}

/**
 * Adds `[begin, end)` sentence by sentence. `cost` is the cost of a cut before the first sentence, `limit` its maximum length;
 * `extraCost` is added to the cuts between sentences. Call with ascending `begin`.
 */
export function addSentences(
  cutting: Cutting,
  begin: number,
  end: number,
  cost: number,
  limit: number,
  extraCost: number,
): void {
  const { text, sizes, stops } = cutting;
  let from = begin;
  let fromCost = cost;
  let fromLimit = limit;
  let at = begin;
  while (at < end) {
    at = nextSentenceEnd(text, stops, at, end);
    if (at < end && at - from < sizes.sentenceMin) continue;
    const next = skipSpace(text, at, end);
    addWhole(cutting, from, next < end ? at : end, fromCost, fromLimit);
    from = next;
    at = next;
    cutting.pieces.next.inside = 0;
    fromCost = (isLowerCase(text.charCodeAt(next)) ? DOUBTFUL_SENTENCE_COST : SENTENCE_COST) + extraCost;
    fromLimit = sizes.room;
  }
}

/** Whether a unit is a lower-case Latin letter without accents. */
export function isLowerCase(code: number): boolean {
  return code >= 0x61 && code <= 0x7a;
}

function addWords({ text, sizes, pieces }: Cutting, begin: number, end: number, cost: number): void {
  let from = -1; // start of the current piece
  let until = -1;
  let nextCost = cost;
  const flush = (): void => {
    if (from < 0) return;
    push(pieces, from, until, nextCost);
    pieces.next.inside = 1;
    nextCost = isClauseEnd(text.charCodeAt(until - 1)) ? CLAUSE_COST : WORD_COST;
    from = -1;
  };

  for (let word = skipSpace(text, begin, end); word < end; word = skipSpace(text, until, end)) {
    const wordUntil = wordEnd(text, word, end);
    if (from >= 0 && wordUntil - from > sizes.grain) flush();
    if (from < 0) from = word;
    until = wordUntil;
    // A word that fits into a chunk may use space of the overlap; a longer one is cut so that all of it is included.
    const most = until - from > sizes.chunk ? sizes.room : sizes.chunk;
    while (until - from > most) {
      const cut = wholeCharacterBefore(text, from, from + sizes.room);
      if (cut >= until) break; // a surrogate pair, while a chunk holds one unit
      push(pieces, from, cut, nextCost);
      pieces.next.inside = 1;
      nextCost = CHARACTER_COST;
      from = cut;
    }
  }
  flush();
}

function isClauseEnd(code: number): boolean {
  return code === 0x2c || code === 0x3b || code === 0x3a || code === 0x3001 || code === 0xff0c;
}

function push(pieces: Pieces, begin: number, end: number, cost: number): void {
  const { next } = pieces;
  if (next.isFloor) next.floor = begin;
  next.isFloor = false;
  pieces.begins.push(begin);
  pieces.ends.push(end);
  pieces.costs.push(cost);
  pieces.floors.push(next.floor);
  pieces.inside.push(next.inside);
  pieces.blocks.push(next.block);
}
