import type { Span } from "../store.ts";

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

export function joinHeadings(headings: readonly string[]): string {
  return headings.map((heading) => heading.replaceAll(HEADING_END, " ") + HEADING_END).join("");
}

export function splitHeadings(text: string): string[] {
  return text.split(HEADING_END).slice(0, -1);
}

/** What a chunk is found by: the title of its resource, the headings above it, its own text. */
export function indexedText(title: string, headings: string, text: string): string {
  return `${title}\n${headings}\n${text}`;
}
