import { frontMatterEnd } from "./front-matter.ts";
import { markdownHeadings } from "./headings.ts";

/** A heading of a document. */
export interface Heading {
  readonly text: string;
  /** The beginning of the sentence below it, as in the document; undefined if no sentence follows. */
  readonly answer: string | undefined;
}

/** A document with headings. */
export interface HeadedFile {
  readonly path: string;
  /** The source's folder, relative to the folder of the questions. Undefined: the knowledge base has one source. */
  readonly source: string | undefined;
  readonly headings: readonly Heading[];
}

/** A question that a heading asks. */
export interface StarterQuestion {
  readonly question: string;
  /** The path of the document. */
  readonly expect: string;
  readonly answer: string | undefined;
  readonly source: string | undefined;
}

/** Maximum number of questions in a starter: a person reads and edits them all. */
export const STARTER_MAX = 100;

/** One word is not a question, and a long heading is a sentence of the text. */
const HEADING_WORDS_MIN = 2;
const HEADING_CHARS_MAX = 120;
/** A heading with its markup, as links. */
const MARKUP_CHARS_MAX = 400;
const ANSWER_CHARS_MIN = 20;
const ANSWER_CHARS_MAX = 80;

/** Lists the headings of a Markdown text, in its order; reads about `charsMax` characters. */
export function* headingsOf(markdown: string, charsMax = Infinity): Generator<Heading> {
  const found = markdownHeadings(markdown, frontMatterEnd(markdown), charsMax, MARKUP_CHARS_MAX);
  for (const { heading, end } of found) yield { text: heading, answer: answerIn(markdown, end) };
}

/**
 * Makes a question of each heading that occurs in one file only, at most `limit`, spread evenly over the files. Returns also the number
 * of headings to choose from. Pure.
 */
export function starterQuestions(
  files: readonly HeadedFile[],
  limit: number,
): { readonly questions: readonly StarterQuestion[]; readonly headings: number } {
  const counts = new Map<string, number>();
  for (const { headings } of files) {
    for (const name of new Set(headings.map(folded))) counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  const sorted = files.toSorted((a, b) => (a.path < b.path ? -1 : Number(a.path > b.path)));
  const candidates = sorted.flatMap(({ path, source, headings }) =>
    specific(headings, counts).map(({ text, answer }) => ({ question: text, expect: path, answer, source })),
  );
  return { questions: spread(candidates, limit), headings: candidates.length };
}

function specific(headings: readonly Heading[], counts: ReadonlyMap<string, number>): Heading[] {
  const seen = new Set<string>();
  return headings.filter((heading) => {
    const name = folded(heading);
    if (seen.has(name)) return false;
    seen.add(name);
    const isQuestion =
      heading.text.split(/\s+/).length >= HEADING_WORDS_MIN && heading.text.length <= HEADING_CHARS_MAX;
    return isQuestion && counts.get(name) === 1;
  });
}

function folded({ text }: Heading): string {
  return text.toLowerCase().replaceAll(/\s+/g, " ");
}

/** Returns `count` of the items at equal distances, or all. */
function spread<T>(items: readonly T[], count: number): T[] {
  if (items.length <= count) return [...items];
  const chosen = new Set(Array.from({ length: count }, (_, at) => Math.floor((at * items.length) / count)));
  return items.filter((_, at) => chosen.has(at));
}

/** Returns the beginning of the first line below a heading if it is plain text; the end of a word ends it. */
function answerIn(markdown: string, start: number): string | undefined {
  const line = /^\s*([^\n]*)/.exec(markdown.slice(start, start + 2000))?.[1]?.trim() ?? "";
  if (!/^\p{L}/u.test(line) || line.length < ANSWER_CHARS_MIN) return undefined;
  if (line.length <= ANSWER_CHARS_MAX) return line;
  const cut = line.slice(0, ANSWER_CHARS_MAX + 1);
  const space = cut.lastIndexOf(" ");
  return space < ANSWER_CHARS_MIN ? undefined : cut.slice(0, space);
}
