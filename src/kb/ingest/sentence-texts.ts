import { newStops, nextSentenceEnd } from "./chunk/sentences.ts";

/** Shorter pieces (a heading, `No.`) say too little alone: they begin the next sentence. */
const SENTENCE_CHARS_MIN = 20;
/**
 * Most sentences of one chunk: a chunk of 4000 characters, the largest there is, of plain prose. What comes beyond
 * (a long list) is put together by neighbours, so that all of a chunk counts and its vectors stay bounded.
 */
export const SENTENCES_MAX = 32;

/**
 * The sentences of a chunk, in order, white space around them gone; each holds a letter or a digit. Blank lines and lines
 * that begin like a heading, an item of a list, a quotation or a row of a table divide as well. At most SENTENCES_MAX. Pure.
 */
export function sentencesOf(text: string): string[] {
  const sentences: string[] = [];
  let waiting = "";
  for (const block of text.split(BLOCK_END)) {
    const stops = newStops(block);
    for (let from = 0; from < block.length;) {
      const to = nextSentenceEnd(block, stops, from, block.length);
      waiting = `${waiting} ${block.slice(from, to).trim().replaceAll(/\s+/g, " ")}`.trim();
      from = to;
      if (waiting.length < SENTENCE_CHARS_MIN) continue;
      sentences.push(waiting);
      waiting = "";
    }
  }
  if (waiting !== "") sentences.push(waiting);
  return grouped(sentences.filter((sentence) => /[\p{L}\p{N}]/u.test(sentence)));
}

/** Line breaks where a new block begins: before a blank line, or before a line with a mark of Markdown. */
const BLOCK_END = /\n(?=[ \t]*(?:\r?\n|[-*+>|#]|\d{1,3}[.)] ))/;

/** Neighbours put together, so that there are no more than SENTENCES_MAX. */
function grouped(sentences: readonly string[]): string[] {
  const size = Math.ceil(sentences.length / SENTENCES_MAX);
  if (size <= 1) return [...sentences];
  const groups: string[] = [];
  for (let at = 0; at < sentences.length; at += size) groups.push(sentences.slice(at, at + size).join(" "));
  return groups;
}
