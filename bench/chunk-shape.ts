/** How whole the chunks of Markdown are: where they begin, and whether their code fences are in pairs. */
import type { Span } from "../src/kb/ingest/chunk/span.ts";

/** Of all chunks of some texts. */
export interface ChunkShapes {
  readonly chunks: number;
  readonly meanChars: number;
  /** Chunks that begin in the middle of a sentence: behind a character that ends none, at no block of their own. */
  readonly midSentence: number;
  /** Chunks that begin with the end of another section than the one they go on with. */
  readonly foreignTail: number;
  /** Chunks with a fence that opens no code, or closes none. */
  readonly unbalanced: number;
}

/** Looks at the chunks of each text as they are answered. */
export function measureShapes(
  texts: readonly string[],
  chunk: (text: string) => readonly Span[],
  contentOf: (text: string, span: Span) => string,
): ChunkShapes {
  const counts = { chunks: 0, chars: 0, midSentence: 0, foreignTail: 0, unbalanced: 0 };
  for (const text of texts) {
    const headings = headingsOf(text);
    let before = 0;
    for (const span of chunk(text)) {
      const content = contentOf(text, span);
      counts.chunks++;
      counts.chars += content.length;
      if (beginsInSentence(text, span.start)) counts.midSentence++;
      const own = before + (/^\s*/.exec(text.slice(before, before + 1000))?.[0].length ?? 0);
      if (headings.some((at) => at > span.start && at <= own)) counts.foreignTail++;
      if ((content.match(/^[ \t]*(?:```|~~~)/gm)?.length ?? 0) % 2 === 1) counts.unbalanced++;
      before = span.end;
    }
  }
  return { ...counts, meanChars: counts.chars / counts.chunks };
}

/** Offsets of the headings outside of code. */
function headingsOf(text: string): number[] {
  const found: number[] = [];
  let fence: string | undefined;
  let at = 0;
  for (const line of text.split("\n")) {
    const mark = /^[ \t]*(```+|~~~+)/.exec(line)?.[1];
    if (mark !== undefined) {
      if (fence === undefined) fence = mark;
      else if (mark.startsWith(fence)) fence = undefined;
    } else if (fence === undefined && /^#{1,6}\s/.test(line)) found.push(at);
    at += line.length + 1;
  }
  return found;
}

/** Code, items, rows, quotes and what follows a blank line begin where they are; other text behind a full stop. */
function beginsInSentence(text: string, start: number): boolean {
  const before = text.slice(Math.max(0, start - 1000), start);
  if (before.trim() === "" || /\n[ \t]*(?:>[ \t]*)?\r?\n\s*$/.test(before)) return false;
  const isLineStart = /\n[ \t]*$/.test(before);
  const line = text.slice(start, start + 200);
  if (isLineStart && /^\s*(?:#{1,6}\s|[-*+]\s|\d+[.)]\s|\||>|```|~~~|<)/.test(line)) return false;
  if (isLineStart && isInCode(text, start)) return false;
  return !/[.!?:;]["'”’)\]*_`]*$/.test(before.trimEnd());
}

function isInCode(text: string, start: number): boolean {
  return (text.slice(0, start).match(/^[ \t]*(?:```|~~~)/gm)?.length ?? 0) % 2 === 1;
}
