import { countNewlines } from "../../../lib/count-newlines.ts";
import { withoutLabels } from "../../../formats/markup/front-matter.ts";
import type { Repeats, Span } from "../chunks.ts";

/**
 * A text as the store holds it: its chunks, the text between them and the text before the first. Chunks overlap little and
 * leave out only white space, so the store needs no second copy of the text.
 */
export interface TextParts {
  readonly head: string;
  readonly chunks: readonly Part[];
}

export interface Part {
  readonly start: number;
  /** Line of the text in which the chunk starts, from 1. */
  readonly line: number;
  readonly text: string;
  /** The text up to the next chunk or the end of the text; empty if the chunks touch or overlap. */
  readonly gap: string;
}

/** Splits a text into its parts. `spans` ascend by start and by end. */
export function splitText(text: string, spans: readonly Span[]): TextParts {
  let line = 1;
  const lineAt = (at: number): number =>
    (line += countNewlines(text, spans[at - 1]?.start ?? 0, spans[at]?.start ?? 0));
  return {
    head: text.slice(0, spans[0]?.start ?? text.length),
    chunks: spans.map(({ start, end }, at) => ({
      start,
      line: lineAt(at),
      text: text.slice(start, end),
      gap: text.slice(end, spans[at + 1]?.start ?? text.length),
    })),
  };
}

/** Rebuilds the text from its parts. */
export function joinText(head: string, chunks: readonly Omit<Part, "line">[]): string {
  let text = head;
  for (const [at, chunk] of chunks.entries()) {
    const next = chunks[at + 1]?.start ?? Infinity;
    text += chunk.start + chunk.text.length > next ? chunk.text.slice(0, next - chunk.start) : chunk.text;
    text += chunk.gap;
  }
  return text;
}

/** Ends each heading of a path in the database: a control character, which no heading contains and which separates words. */
const HEADING_END = "\u001F";

/** Separates the repeated text before a chunk from that after it; both follow the headings in the same column. */
const REPEATS_MIDDLE = "\u001E";
// oxlint-disable-next-line no-control-regex -- it matches the separators
const MARKS = /[\u001E\u001F]/g;

/** Builds the column `headings`: the path, and the text that the chunk repeats. Both are indexed and embedded with it. */
export function joinHeadings({
  headings,
  before = "",
  after = "",
}: Pick<Span, "headings"> & Repeats): string {
  const path = headings.map((heading) => heading.replaceAll(MARKS, " ") + HEADING_END).join("");
  if (before === "" && after === "") return path;
  return `${path}${before.replaceAll(MARKS, " ")}${REPEATS_MIDDLE}${after.replaceAll(MARKS, " ")}`;
}

/** Returns the path of headings in a column `headings`. */
export function splitHeadings(column: string): string[] {
  return column.split(HEADING_END).slice(0, -1);
}

/** Returns a chunk from its columns: its headings, and its text between the texts that it repeats. */
export function readChunk(column: string, text: string): ReadChunk {
  const headings = splitHeadings(column);
  const [before = "", after] = column.slice(column.lastIndexOf(HEADING_END) + 1).split(REPEATS_MIDDLE);
  if (after === undefined) return { headings, text };
  return {
    headings,
    text: before + text + after,
    ...(before !== "" && { before }),
    ...(after !== "" && { after }),
  };
}

export interface ReadChunk extends Repeats {
  readonly headings: readonly string[];
  readonly text: string;
}

/**
 * Identifies a chunk among those of the same title by what its vector is made from: the column `headings` and the text without the
 * labels in its front matter.
 */
export function vectorKey(headings: string, text: string): string {
  return `${headings}\n${withoutLabels(text)}`;
}

/** SQL expression over a resource for the text that all its chunks are indexed by; see `namesOf`. */
export const NAMES = "title || ' ' || label";

/** Returns the text that all chunks of a resource are indexed by. */
export function namesOf({ title, label }: { readonly title: string; readonly label: string }): string {
  return `${title} ${label}`;
}

/** Returns the text that a chunk is indexed by: the names of its resource, the column `headings`, its own text. */
export function indexedText(names: string, headings: string, text: string): string {
  return `${names}\n${headings}\n${text}`;
}
