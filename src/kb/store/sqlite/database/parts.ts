import type { Repeats, Span } from "../../records.ts";

/**
 * A text as the store keeps it: its chunks, what stands between them and what stands before the first. Chunks overlap
 * by little and miss only white space, so the text needs no second copy.
 */
export interface Parts {
  readonly head: string;
  readonly chunks: readonly Part[];
}

export interface Part {
  readonly start: number;
  /** The chunk. */
  readonly text: string;
  /** What follows it up to the start of the next chunk, or the end of the text; empty where they touch or overlap. */
  readonly gap: string;
}

/** Takes a text apart; `spans` ascend by start and by end. */
export function takeApart(text: string, spans: readonly Span[]): Parts {
  return {
    head: text.slice(0, spans[0]?.start ?? text.length),
    chunks: spans.map(({ start, end }, at) => ({
      start,
      text: text.slice(start, end),
      gap: text.slice(end, spans[at + 1]?.start ?? text.length),
    })),
  };
}

/** Puts the text together again. */
export function putTogether({ head, chunks }: Parts): string {
  let text = head;
  for (const [at, chunk] of chunks.entries()) {
    const next = chunks[at + 1]?.start ?? Infinity;
    text += chunk.start + chunk.text.length > next ? chunk.text.slice(0, next - chunk.start) : chunk.text;
    text += chunk.gap;
  }
  return text;
}

/** Ends each heading of a path in the database: a control character that divides words, as no heading holds it. */
const HEADING_END = "\u001F";

/** Stands between what a chunk repeats before and after its text, behind the headings in the same column. */
const REPEATS_MIDDLE = "\u001E";
// oxlint-disable-next-line no-control-regex -- they are what is looked for
const MARKS = /[\u001E\u001F]/g;

/** The column `headings`: the path, and what the chunk repeats, which is found and embedded with it as headings are. */
export function joinHeadings({
  headings,
  before = "",
  after = "",
}: Pick<Span, "headings"> & Repeats): string {
  const path = headings.map((heading) => heading.replaceAll(MARKS, " ") + HEADING_END).join("");
  if (before === "" && after === "") return path;
  return `${path}${before.replaceAll(MARKS, " ")}${REPEATS_MIDDLE}${after.replaceAll(MARKS, " ")}`;
}

export function splitHeadings(column: string): string[] {
  return column.split(HEADING_END).slice(0, -1);
}

/** A chunk as it is read: its headings, and its text between what it repeats. */
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

/** What a chunk is found by: the title of its resource, the headings above it with what it repeats, its own text. */
export function indexedText(title: string, headings: string, text: string): string {
  return `${title}\n${headings}\n${text}`;
}
