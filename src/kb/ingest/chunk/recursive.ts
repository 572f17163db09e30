import type { Settings } from "../../../wire/primitives.ts";
import { skipSpace, trimSpace } from "./characters.ts";
import { outlineOf } from "./outline.ts";
import type { Heading, Outline } from "./scan.ts";
import { findBegin, newCursor } from "./overlap.ts";
import { sizesOf } from "./pieces.ts";
import { planChunks } from "./plan.ts";
import type { Chunker, Span } from "./span.ts";

/**
 * Splits a text at its own joints: headings before blocks, blocks before list items, table rows and lines, these
 * before sentences, words and characters, in chunks as full as good joints allow. Consecutive chunks share up to
 * `chunkOverlap` units, from the begin of a sentence, line or word. Time and memory are linear in the text and the
 * number of chunks. Where `chunkSize` is 1, a surrogate pair is a chunk of 2: cutting it would destroy it.
 */
export const chunkRecursive: Chunker = (text: string, settings: Settings): readonly Span[] => {
  const begin = skipSpace(text, 0, text.length);
  const end = trimSpace(text, begin, text.length);
  if (begin === end) return [];
  if (end - begin <= settings.chunkSize) return [{ start: begin, end, headings: [] }];

  const sizes = sizesOf(settings.chunkSize, settings.chunkOverlap);
  const outline = outlineOf(text, sizes);
  const { pieces } = outline;
  const last = planChunks(pieces, sizes);
  const cursor = newCursor();
  const path = newPath();
  const spans: Span[] = [];
  for (let piece = 0; piece < last.length;) {
    const until = last[piece] ?? piece;
    spans.push({
      start: findBegin(text, pieces, sizes, piece, cursor),
      end: pieces.ends[until] ?? text.length,
      headings: pathAbove(outline, piece, path),
    });
    piece = until + 1;
  }
  return spans;
};

/** The headings open at the place reached, outermost first. */
interface Path {
  readonly open: Heading[];
  titles: readonly string[];
  /** Number of headings read. */
  read: number;
}

function newPath(): Path {
  return { open: [], titles: [], read: 0 };
}

/** Moves on to a piece, which lies behind the last one asked for, and tells the headings above it. */
function pathAbove({ headings }: Outline, piece: number, path: Path): readonly string[] {
  let changed = false;
  let heading = headings[path.read];
  for (; heading !== undefined && heading.piece < piece; heading = headings[path.read]) {
    close(path, heading.level);
    path.open.push(heading);
    path.read++;
    changed = true;
  }
  // A chunk that begins with a heading stands beside, not under, the sections which that heading ends.
  if (heading?.piece === piece && closes(path, heading.level)) {
    close(path, heading.level);
    changed = true;
  }
  if (changed) path.titles = path.open.map(({ title }) => title);
  return path.titles;
}

function close(path: Path, level: number): void {
  while (closes(path, level)) path.open.pop();
}

function closes(path: Path, level: number): boolean {
  const innermost = path.open.at(-1);
  return innermost !== undefined && innermost.level >= level;
}
