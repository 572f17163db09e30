import { findBegin, newCursor } from "./overlap.ts";
import { afterPiece, beforePiece } from "./pieces.ts";
import type { Pieces, Sizes } from "./pieces.ts";
import type { Heading, Outline } from "./scan.ts";
import type { Span } from "./span.ts";

/**
 * The chunks of a plan, which names for each piece that begins a chunk the last piece of it. Each chunk shares up to the
 * overlap with the one before, knows the headings above its first own piece, and repeats what a part of a table or code block
 * cannot be read without.
 */
export function spansOf(text: string, outline: Outline, sizes: Sizes, last: Int32Array): readonly Span[] {
  const { pieces } = outline;
  const cursor = newCursor();
  const path = newPath();
  const spans: Span[] = [];
  for (let piece = 0; piece < last.length;) {
    const until = last[piece] ?? piece;
    const start = findBegin(text, pieces, sizes, piece, cursor);
    const end = pieces.ends[until] ?? text.length;
    const headings = pathAbove(outline, piece, path);
    spans.push({ start, end, headings, ...frameOf(pieces, sizes, piece, until, start) });
    piece = until + 1;
  }
  return spans;
}

/** What the chunk of two pieces and all between repeats of the blocks that it begins and ends in, where there is room. */
function frameOf(
  pieces: Pieces,
  sizes: Sizes,
  piece: number,
  until: number,
  start: number,
): Pick<Span, "before" | "after"> {
  const first = pieces.frames[pieces.blocks[piece] ?? -1]?.first ?? piece;
  const before = start > (pieces.begins[first] ?? 0) ? beforePiece(pieces, piece) : "";
  const after = afterPiece(pieces, until);
  if (before.length + (pieces.ends[until] ?? 0) - start + after.length > sizes.chunk) return {};
  return { ...(before !== "" && { before }), ...(after !== "" && { after }) };
}

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
