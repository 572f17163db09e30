import { findBegin, newCursor } from "./overlap.ts";
import { afterPiece, beforePiece } from "./pieces.ts";
import type { Pieces, Sizes } from "./pieces.ts";
import type { Heading, Outline } from "./scan.ts";
import type { Span } from "./span.ts";

/**
 * Builds the chunks of a plan, which gives for each piece that starts a chunk the chunk's last piece. Each chunk shares up to the
 * overlap with the previous one, has the headings above its first own piece, and repeats the head of a split table or the fence of
 * split code.
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

/** Returns the head or fences that a chunk repeats of the blocks it starts and ends in, if they fit. */
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

/** The headings above the current piece, outermost first. */
interface Path {
  readonly open: Heading[];
  titles: readonly string[];
  /** Number of headings read. */
  read: number;
}

function newPath(): Path {
  return { open: [], titles: [], read: 0 };
}

/** Advances to a piece and returns the headings above it. Call with ascending pieces. */
function pathAbove({ headings }: Outline, piece: number, path: Path): readonly string[] {
  let changed = false;
  let heading = headings[path.read];
  for (; heading !== undefined && heading.piece < piece; heading = headings[path.read]) {
    close(path, heading.level);
    path.open.push(heading);
    path.read++;
    changed = true;
  }
  // A chunk that starts with a heading is not below the sections that this heading ends.
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
