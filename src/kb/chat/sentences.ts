import { newStops, nextSentenceEnd } from "../ingest/chunk/sentences.ts";
import { termOccurrences, type QueryWords } from "../lexical/word-match.ts";

/** White space and the marker of a list item or quotation at the start of a line. */
const MARK = /^\s*(?:(?:[-*+>]|\d{1,3}[.)])\s+)*/;
const HEADING = /^#{1,6}\s/;
/** A line of markup without a sentence: a code fence, a tag, the address of a link. */
const MARKUP = /^(?:```|~~~|<[^>]*>$|\[[^\]]+\]:\s)/;
/** A line that begins a block of its own. */
const BLOCK = /^[ \t]*(?:$|[-*+>|#<]|```|~~~|\d{1,3}[.)]\s|\[[^\]]+\]:\s)/;
const FENCE = /^[ \t]*(?:`{3,}|~{3,})[ \t]*(\S*)/;
const SENTENCE_END = /[.!?:;。！？]["'”’)\]*_`]*\s*$/;
/** Characters of a line that the width of a page wraps, at least. */
const WRAPPED_CHARS_MIN = 60;
/** The YAML header of a Markdown file: fields of the file, no sentences. */
const FRONT_MATTER = /^---[ \t]*\r?\n(?:[^\n]+\n){0,200}?---[ \t]*(?:\r?\n|$)/;

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
 * Splits a text into sentences, in order, without front matter, comments, lines of markup and lines without a letter or digit. A line end
 * also ends a sentence, unless it only wraps a paragraph.
 */
export function sentencesOf(text: string): Sentence[] {
  const sentences: Sentence[] = [];
  const stops = newStops(text);
  const comments = commentsOf(text);
  let from = bodyStart(text);
  let isCode = false;
  while (from < text.length) {
    const line = lineAt(text, from);
    // A fence with a language begins code, wherever the text was cut.
    const fence = FENCE.exec(line);
    if (fence !== null) isCode = fence[1] !== "" || !isCode;
    if (MARKUP.test(line.trim())) {
      from += line.length + 1;
      continue;
    }
    const commentEnd = isCode ? -1 : comments.endAt(from, line);
    if (commentEnd >= 0) {
      from = commentEnd;
      continue;
    }
    const lineEnd = isCode ? from + line.length : endOfLine(text, from);
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

const COMMENT_END = "-->";

/** Finds comments that begin with a line. One whose end the text lacks is none. */
function commentsOf(text: string) {
  let next = -1;
  return {
    /** Returns the offset behind the comment that the line at `from` begins with; -1: it begins with none. Expects lines in order. */
    endAt: (from: number, line: string): number => {
      if (!/^[ \t]*<!--/.test(line)) return -1;
      // Each end is searched once.
      if (next < from) next = text.indexOf(COMMENT_END, from);
      if (next < 0) next = Infinity;
      return next === Infinity ? -1 : next + COMMENT_END.length;
    },
  };
}

function lineAt(text: string, from: number): string {
  const newline = text.indexOf("\n", from);
  return text.slice(from, newline === -1 ? text.length : newline);
}

/** Returns the end of the line at `from`, with following lines that continue its sentence. */
function endOfLine(text: string, from: number): number {
  let line = lineAt(text, from);
  // A heading is one line, a row of a table too.
  const isAlone = /^[ \t]*[#|]/.test(line);
  for (let at = from; ;) {
    const end = at + line.length;
    if (end >= text.length) return text.length;
    const next = lineAt(text, end + 1);
    const goesOnInLowerCase = /^\p{Ll}/u.test(next) && /[\p{L}\p{N},]\r?$/u.test(line);
    const isWrapped = line.length >= WRAPPED_CHARS_MIN && !BLOCK.test(next) && !SENTENCE_END.test(line);
    if (!goesOnInLowerCase && (isAlone || !isWrapped)) return end;
    at = end + 1;
    line = next;
  }
}

function trimmed(text: string, from: number, to: number): Sentence {
  const raw = text.slice(from, to);
  const start = from + (raw.length - raw.trimStart().length);
  const clean = raw.trim();
  return { start, end: start + clean.length, text: clean };
}

/** Returns the share of a query's words, by weight, that a text contains; 0 for function words alone. */
export function shareIn(words: QueryWords, text: string): number {
  return shareOf(words, termsIn(words, text));
}

/** A sentence, and the share of the query's words in it, its heading and its title. */
export interface RatedSentence extends Sentence {
  readonly share: number;
}

/** Weight of the words of heading and title where several sentences have the same words of the query. */
const CONTEXT_WEIGHT = 0.05;
/** The shorter of two sentences with nearly the same words says it more plainly. */
const LENGTH_WEIGHT = 0.1;
const LENGTH_CHARS_MAX = 500;

/**
 * Returns the sentence that says most about a query, the first of equals; undefined if none contains any of its words. What a
 * sentence contains itself decides; its heading and title count for `share`, because a text under "Opening hours" does not repeat
 * these words. The title alone makes no match unless it has all of the words. A heading itself is chosen only if no sentence matches.
 */
export function bestSentence(text: string, words: QueryWords, title: string): RatedSentence | undefined {
  const inTitle = termsIn(words, title);
  const isTitle = shareOf(words, inTitle) === 1;
  let inHeading: ReadonlySet<number> = new Set();
  let best: (RatedSentence & { readonly rating: number }) | undefined;
  let bestHeading: RatedSentence | undefined;
  for (const sentence of sentencesOf(text)) {
    const own = termsIn(words, sentence.text);
    if (HEADING.test(sentence.text)) {
      inHeading = own;
      const share = shareOf(words, own);
      if (share > (bestHeading?.share ?? 0)) bestHeading = { ...sentence, share };
      continue;
    }
    if (!isTitle && own.size === 0 && inHeading.size === 0) continue;
    const share = shareOf(words, new Set([...own, ...inHeading, ...inTitle]));
    const length = Math.min(1, sentence.text.length / LENGTH_CHARS_MAX);
    const rating = shareOf(words, own) + CONTEXT_WEIGHT * share - LENGTH_WEIGHT * length;
    if (share > 0 && rating > (best?.rating ?? -Infinity)) best = { ...sentence, share, rating };
  }
  return best ?? bestHeading;
}

function termsIn(words: QueryWords, text: string): ReadonlySet<number> {
  return new Set(termOccurrences(words, text).occurrences.map(({ term }) => term));
}

function shareOf({ weights, total }: QueryWords, terms: ReadonlySet<number>): number {
  let missing = 0;
  for (const [term, weight] of weights.entries()) if (!terms.has(term)) missing += weight;
  // Counted by what is missing, so that all words are exactly 1 and none are exactly 0.
  return total > 0 ? 1 - missing / total : 0;
}
