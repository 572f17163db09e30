import { newStops, nextSentenceEnd } from "../ingest/chunk/sentences.ts";
import { analyze } from "../lexical/analyzer.ts";

/** A sentence, or a line, as a place in its text: UTF-16 offsets, end exclusive, no white space at its ends. */
export interface Sentence {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

/** The sentences of a text in order; a line break ends one as well. */
export function sentencesOf(text: string): Sentence[] {
  const sentences: Sentence[] = [];
  const stops = newStops(text);
  let from = 0;
  while (from < text.length) {
    const newline = text.indexOf("\n", from);
    const lineEnd = newline === -1 ? text.length : newline;
    while (from < lineEnd) {
      const to = nextSentenceEnd(text, stops, from, lineEnd);
      const sentence = trimmed(text, from, to);
      if (sentence.text !== "") sentences.push(sentence);
      from = Math.max(to, from + 1);
    }
    from = lineEnd + 1;
  }
  return sentences;
}

function trimmed(text: string, from: number, to: number): Sentence {
  const raw = text.slice(from, to);
  const start = from + (raw.length - raw.trimStart().length);
  const clean = raw.trim();
  return { start, end: start + clean.length, text: clean };
}

/** The distinct terms of a text, as search has them. */
export function termsOf(text: string): ReadonlySet<string> {
  return new Set(analyze(text).terms);
}

/** Share of `wanted` that stands in `text`; 0 where nothing is wanted. */
export function coverage(wanted: ReadonlySet<string>, text: string): number {
  if (wanted.size === 0) return 0;
  let found = 0;
  for (const term of termsOf(text)) if (wanted.has(term)) found += 1;
  return found / wanted.size;
}

/** The sentence that holds most of `wanted`, the first of equals; undefined where none holds any. */
export function bestSentence(text: string, wanted: ReadonlySet<string>): Sentence | undefined {
  let best: Sentence | undefined;
  let most = 0;
  for (const sentence of sentencesOf(text)) {
    const share = coverage(wanted, sentence.text);
    if (share > most) [best, most] = [sentence, share];
  }
  return best;
}
