import { tally, vocabulary } from "./analyzer.ts";
import { saturation } from "./bm25.ts";

/** A step of a term's weight in a chunk, which the index stores instead of counts. */
export interface Level {
  /** Suffix of the term in the index. Not a letter or digit, so no word of a text collides with it. */
  readonly mark: string;
  /** Minimum saturation of a term with this mark; one occurrence in a chunk of mean length has 1. */
  readonly from: number;
  /** Mean saturation of the terms between this level and the next. */
  readonly mean: number;
}

/**
 * The index lists a chunk under each of its terms, and under marked forms of the terms that occur often (or weigh much
 * because the chunk is short). Counts would make the index half as large again and slower to write, and could not be
 * queried; these levels suffice to select the chunks whose exact scores are worth computing. Measured on 100,000 chunks
 * of manual pages: a mark from 1.4 adds a quarter to the entries and finds nearly as much as exact counts; a mark from
 * 1.3, 1.5 or 1.6 finds less. The mark from 1.8 is rare and separates the best chunks of a word that is heavy in hundreds.
 */
export const LEVELS: readonly Level[] = [
  { mark: "", from: 0, mean: 1 },
  { mark: "·", from: 1.4, mean: 1.57 },
  { mark: "··", from: 1.8, mean: 1.92 },
];

/**
 * Mean chunk length that the levels assume, in words: 1000 characters of English prose. Only the selection of candidates
 * depends on it; scores use the mean of the scope.
 */
const WORDS_MEAN = 150;

/** A chunk as the index stores it. */
export interface IndexEntry {
  /** Terms and their marked forms, separated by spaces, in UTF-8. */
  readonly text: Buffer;
  readonly words: number;
}

/** Builds the index entry of a text. */
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
    // For a handful of bytes a loop is faster than any call.
    for (let byte = from; byte < end; byte++) entry[length++] = forms[byte] ?? 0;
  }
  return { text: Buffer.from(entry.subarray(0, length)), words };
}

// Cached bytes of each term's forms: "term term· term·· ". An entry copies a prefix. Joining strings instead took a fifth
// of the time of an initial load and made most of its garbage.
let forms = Buffer.alloc(2 ** 20);
let formsEnd = 0;
/** Start of a term's forms, by term number. */
let formStarts = new Uint32Array(2 ** 12);
/** End of the forms up to a level, by term number and level; 0 if not cached yet. */
let formEnds = new Uint32Array(2 ** 12 * LEVELS.length);
/** Generation of the vocabulary that the cached forms belong to. */
let generation = -1;
/** Buffer of the current entry. */
let entry = Buffer.alloc(2 ** 14);

function addForms(id: number): void {
  const term = vocabulary.termOf(id);
  while (id >= formStarts.length) {
    formStarts = grown(formStarts);
    formEnds = grown(formEnds);
  }
  // A term has at most TERM_CHARS_MAX characters, about 200 bytes.
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
