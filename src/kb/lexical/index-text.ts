import { tally, vocabulary } from "./analyzer.ts";
import { saturation } from "./bm25.ts";

/** How much a term weighs in a chunk, in steps: what the index knows instead of counts. */
export interface Level {
  /** Stands behind the term in the index. No letter or digit, so no word of a text can look like it. */
  readonly mark: string;
  /** Saturation from which a term is listed under the mark; one occurrence in a chunk of mean length has 1. */
  readonly from: number;
  /** Mean saturation of the terms between this level and the next. */
  readonly mean: number;
}

/**
 * A chunk is listed under each of its terms, and under marked forms of those that stand there often (or weigh much
 * because the chunk is short). Counts would make the index half as large again and slower to write, and could not be
 * asked for; these levels suffice to choose the chunks whose exact scores are worth computing. Measured on 100,000
 * chunks of manual pages: a mark from 1.4 adds a quarter to the entries and finds nearly as much as exact counts
 * would; from 1.3, 1.5 or 1.6 less. The mark from 1.8 is rare, and tells the best chunks of a word that is heavy in
 * hundreds.
 */
export const LEVELS: readonly Level[] = [
  { mark: "", from: 0, mean: 1 },
  { mark: "·", from: 1.4, mean: 1.57 },
  { mark: "··", from: 1.8, mean: 1.92 },
];

/**
 * Mean length the levels are made with, in words: 1000 characters of English prose. Only the choice of candidates
 * depends on it; their scores come from the scope's own mean.
 */
const WORDS_MEAN = 150;

/** What the index is given for a chunk, and the number of its words. */
export interface IndexEntry {
  /** The terms and their marked forms, divided by spaces, in UTF-8. */
  readonly text: Buffer;
  readonly words: number;
}

/** Analyses a text for the index. */
export function indexEntry(text: string): IndexEntry {
  const { ids, distinct, counts, words } = tally(text);
  if (generation !== vocabulary.generation()) {
    generation = vocabulary.generation();
    formEnds.fill(0);
    formsEnd = 0;
  }
  let length = 0;
  for (let at = 0; at < distinct; at++) {
    const id = ids[at] ?? 0;
    const slot = id * LEVELS.length;
    if (slot >= formEnds.length || formEnds[slot] === 0) addForms(id);
    const weight = saturation(counts[id] ?? 0, words, WORDS_MEAN);
    let level = LEVELS.length - 1;
    while (level > 0 && weight < (LEVELS[level]?.from ?? 0)) level--;
    const from = formStarts[id] ?? 0;
    const end = formEnds[slot + level] ?? 0;
    if (length + end - from > entry.length) entry = Buffer.concat([entry], entry.length * 2);
    // Byte by byte: for a handful of bytes that is quicker than any call.
    for (let byte = from; byte < end; byte++) entry[length++] = forms[byte] ?? 0;
  }
  return { text: Buffer.from(entry.subarray(0, length)), words };
}

// The forms of each term lie ready as bytes: "term term· term·· ", of which an entry takes a beginning. Joining strings
// instead was a fifth of the time and most of the garbage of an initial load.
let forms = Buffer.alloc(2 ** 20);
let formsEnd = 0;
/** By term number: where its forms begin. */
let formStarts = new Uint32Array(2 ** 12);
/** By term number and level: where the forms up to that level end; 0 where they are not made yet. */
let formEnds = new Uint32Array(2 ** 12 * LEVELS.length);
/** Of the vocabulary the forms belong to. */
let generation = -1;
/** The entry under way. */
let entry = Buffer.alloc(2 ** 14);

function addForms(id: number): void {
  const term = vocabulary.termOf(id);
  while (id >= formStarts.length) {
    formStarts = grown(formStarts);
    formEnds = grown(formEnds);
  }
  // A term has at most TERM_CHARS_MAX characters: some 200 bytes.
  while (formsEnd + 1024 > forms.length) forms = Buffer.concat([forms], forms.length * 2);
  formStarts[id] = formsEnd;
  for (const [level, { mark }] of LEVELS.entries()) {
    formsEnd += forms.write(`${term}${mark} `, formsEnd);
    formEnds[id * LEVELS.length + level] = formsEnd;
  }
}

function grown(numbers: Uint32Array<ArrayBuffer>): Uint32Array<ArrayBuffer> {
  const longer = new Uint32Array(numbers.length * 2);
  longer.set(numbers);
  return longer;
}
