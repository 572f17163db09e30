import { newStops, nextSentenceEnd } from "../ingest/chunk/sentences.ts";
import { analyze } from "../lexical/analyzer.ts";

/** White space and the marker of a list item or quotation at the start of a line. */
const MARK = /^\s*(?:(?:[-*+>]|\d{1,3}[.)])\s+)*/;
const HEADING = /^#{1,6}\s/;
/** The YAML header of a Markdown file: fields of the file, no sentences. */
const FRONT_MATTER = /^---[ \t]*\r?\n(?:[^\n]+\n){0,200}?---[ \t]*(?:\r?\n|$)/;

/** English function words, which occur in every text whatever its subject. */
const FUNCTION_WORDS =
  "a about all also am an and any are as at be been but by can could did do does for from get give had has have he her him his how i if in into is it its may me more most much must my no not of on one or our out over shall she should so some than that the their them then there these they this those to up us was we were what when where which who whom whose why will with would you your";
/** The function words as search terms. */
const FUNCTION_TERMS: ReadonlySet<string> = new Set(analyze(FUNCTION_WORDS).terms);

/** A sentence or a line as a range of its text: UTF-16 offsets, end exclusive, without white space at either end. */
export interface Sentence {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

/** Returns the offset of the text after its front matter; 0 without any. */
export function bodyStart(text: string): number {
  return FRONT_MATTER.exec(text)?.[0].length ?? 0;
}

/**
 * Splits a text into sentences, in order, without front matter and lines without a letter or digit. A line end also ends a
 * sentence, unless it only wraps a paragraph.
 */
export function sentencesOf(text: string): Sentence[] {
  const sentences: Sentence[] = [];
  const stops = newStops(text);
  let from = bodyStart(text);
  while (from < text.length) {
    const lineEnd = endOfLine(text, from);
    // Otherwise the full stop of "1." would end a sentence.
    from += MARK.exec(text.slice(from, lineEnd))?.[0].length ?? 0;
    while (from < lineEnd) {
      const to = nextSentenceEnd(text, stops, from, lineEnd);
      const sentence = trimmed(text, from, to);
      if (/[\p{L}\p{N}]/u.test(sentence.text)) sentences.push(sentence);
      from = Math.max(to, from + 1);
    }
    from = lineEnd + 1;
  }
  return sentences;
}

/** Returns the end of the line at `from`, with following lines that continue its sentence in lower case. */
function endOfLine(text: string, from: number): number {
  for (let at = from; ;) {
    const newline = text.indexOf("\n", at);
    if (newline === -1) return text.length;
    const goesOn =
      /\p{Ll}/u.test(text.charAt(newline + 1)) && /[\p{L}\p{N},]/u.test(text.charAt(newline - 1));
    if (!goesOn) return newline;
    at = newline + 1;
  }
}

function trimmed(text: string, from: number, to: number): Sentence {
  const raw = text.slice(from, to);
  const start = from + (raw.length - raw.trimStart().length);
  const clean = raw.trim();
  return { start, end: start + clean.length, text: clean };
}

/** Returns the distinct search terms of a text without function words; all terms if there are no others. */
export function termsOf(text: string): ReadonlySet<string> {
  const { terms } = analyze(text);
  const content = terms.filter((term) => !FUNCTION_TERMS.has(term));
  return new Set(content.length === 0 ? terms : content);
}

/** Share of `wanted` that stands in `text`; 0 where nothing is wanted. */
export function coverage(wanted: ReadonlySet<string>, text: string): number {
  if (wanted.size === 0) return 0;
  let found = 0;
  for (const term of termsOf(text)) if (wanted.has(term)) found += 1;
  return found / wanted.size;
}

/** A sentence, and the share of the wanted terms in it and in its headings. */
export interface RatedSentence extends Sentence {
  readonly share: number;
}

/**
 * Returns the sentence with the largest share of the wanted terms, the first of equals; undefined if none contains any. The title and
 * the nearest heading count as part of a sentence, because a text under "Opening hours" does not repeat these words. The title
 * alone makes no match unless it has all of the terms. A heading itself is chosen only if no sentence matches.
 */
export function bestSentence(
  text: string,
  wanted: ReadonlySet<string>,
  title: string,
): RatedSentence | undefined {
  const isTitle = coverage(wanted, title) === 1;
  let heading = "";
  let best: RatedSentence | undefined;
  let bestHeading: RatedSentence | undefined;
  for (const sentence of sentencesOf(text)) {
    if (HEADING.test(sentence.text)) {
      heading = sentence.text;
      const share = coverage(wanted, heading);
      if (share > (bestHeading?.share ?? 0)) bestHeading = { ...sentence, share };
      continue;
    }
    if (!isTitle && coverage(wanted, `${sentence.text} ${heading}`) === 0) continue;
    const share = coverage(wanted, `${sentence.text} ${heading} ${title}`);
    if (share > (best?.share ?? 0)) best = { ...sentence, share };
  }
  return best ?? bestHeading;
}
