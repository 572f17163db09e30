import { lazyModule } from "../../lib/lazy-module.ts";
import { readFrontMatter } from "../../sync/document/front-matter.ts";
import { isConverted, kindOfName } from "../../sync/document/kinds.ts";
import { markdownHeadings } from "../../sync/document/title.ts";

/** A heading of a document. */
export interface Heading {
  readonly text: string;
  /** The beginning of the sentence below it, as in the document; undefined if no sentence follows. */
  readonly answer: string | undefined;
}

/** A synced document. */
export interface HeadedFile {
  readonly path: string;
  /** The source's folder, relative to the folder of the questions. Undefined: the knowledge base has one source. */
  readonly source: string | undefined;
  readonly headings: readonly Heading[];
}

/** A starter: YAML, the number of its questions, and that of the headings to choose from. */
export interface Starter {
  readonly text: string;
  readonly questions: number;
  readonly headings: number;
}

/** Maximum number of questions in a starter: a person reads and edits them all. */
export const STARTER_MAX = 100;

/** One word is not a question, and a long heading is a sentence of the text. */
const HEADING_WORDS_MIN = 2;
const HEADING_CHARS_MAX = 120;
const ANSWER_CHARS_MIN = 20;
const ANSWER_CHARS_MAX = 80;

const HEADER = `# Questions for \`kbsync eval\`, made from the headings of your documents. Edit them: ask as people ask, in words
# that are not in the document. A heading word for word is the easiest question there is.
#
# - question: may I open the dome in the rain
#   expect: handbook/dome.md     # path below the source's folder, or a glob such as "handbook/**", or a list of these
#   answer: never while it rains # optional: text of the document that one of the first three passages must contain
#   source: ../docs              # optional: search this synced folder only (relative to this file)
`;

const writer = lazyModule((load) => load("yaml") as typeof import("yaml"));

/** Whether the text of a file of this name is Markdown at the service. */
export function hasMarkdownHeadings(path: string): boolean {
  const named = kindOfName(path);
  return isConverted(named) || (named.kind === "content" && named.format === "markdown");
}

/** Lists the headings of a Markdown text, in its order. */
export function headingsOf(markdown: string): Heading[] {
  const start = readFrontMatter(markdown)?.end ?? 0;
  return [...markdownHeadings(markdown, start, Infinity)].map(({ heading, end }) => ({
    text: heading,
    answer: answerIn(markdown, end),
  }));
}

/** Makes a question of each heading that occurs in one file only, at most `STARTER_MAX`, spread evenly over the files. Pure. */
export function makeStarter(files: readonly HeadedFile[]): Starter {
  const counts = new Map<string, number>();
  for (const { headings } of files) {
    for (const name of new Set(headings.map(folded))) counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  const sorted = files.toSorted((a, b) => (a.path < b.path ? -1 : Number(a.path > b.path)));
  const candidates = sorted.flatMap(({ path, source, headings }) =>
    specific(headings, counts).map(({ text, answer }) => ({
      question: text,
      expect: path,
      answer,
      source: source === "" ? "." : source,
    })),
  );
  const chosen = spread(candidates, STARTER_MAX);
  const { stringify } = writer();
  const entries = chosen.map((entry) => stringify([entry], { lineWidth: 0 }));
  return {
    text: [HEADER, ...entries].join("\n"),
    questions: chosen.length,
    headings: candidates.length,
  };
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
