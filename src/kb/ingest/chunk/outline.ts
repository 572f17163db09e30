import { skipSpace, trimSpace } from "./characters.ts";
import * as cost from "./costs.ts";
import * as lines from "./lines.ts";
import type { LineKind } from "./lines.ts";
import { addSentences, addWhole } from "./pieces.ts";
import type { Sizes } from "./pieces.ts";
import { isRecord, priceOf } from "./prices.ts";
import { kindOf, lastCode, newScan } from "./scan.ts";
import type { Outline, Scan } from "./scan.ts";
import { endsSentence } from "./sentences.ts";

/**
 * Reads a text once, line by line. Recognises the Markdown that matters for cuts and treats the rest as paragraphs, so that plain
 * text and source code split at blank lines, lines and sentences.
 */
export function outlineOf(text: string, sizes: Sizes): Outline {
  const scan = newScan(text, sizes);
  let from = 0;
  while (from < text.length) {
    const newline = text.indexOf("\n", from);
    const lineEnd = newline < 0 ? text.length : newline;
    const begin = skipSpace(text, from, lineEnd);
    if (begin === lineEnd) scan.blank = true;
    else readLine(scan, from, begin, trimSpace(text, begin, lineEnd));
    from = lineEnd + 1;
  }
  // An unclosed fence encloses the rest of the text; its last part repeats it like the others.
  if (scan.fencePiece >= 0) keepWhole(scan, scan.fencePiece);
  closeTable(scan);
  closeList(scan);
  return scan;
}

/** Reads one line that is not blank: it starts at `lineBegin`, its text is `[begin, end)`. */
function readLine(scan: Scan, lineBegin: number, begin: number, end: number): void {
  const indent = begin === lineBegin ? 0 : columns(scan.text, lineBegin, begin);
  const from = keepsIndent(scan, lineBegin, begin) ? lineBegin : begin;
  if (scan.fencePiece >= 0) readFenced(scan, from, begin, end, indent);
  else if (isUnderline(scan, begin, end, indent)) readUnderline(scan, begin, end);
  else readBlockLine(scan, kindOf(scan, begin, end, indent), from, begin, end, indent);
  scan.blank = false;
  scan.lineUnits = end - begin;
}

function readBlockLine(
  scan: Scan,
  kind: LineKind,
  from: number,
  begin: number,
  end: number,
  indent: number,
): void {
  if (scan.tablePiece >= 0 && (kind !== "row" || scan.blank)) closeTable(scan);
  if (scan.listPiece >= 0 && leavesList(scan, kind, indent)) closeList(scan);
  const price = priceOf(scan, kind, begin, end, indent);
  const isInside = runsOn(scan, kind, begin) && !isRecord(scan, begin);
  const { headingsBegin } = scan;
  openBlock(scan, kind, from, begin, end);
  const limit = limitOf(scan, from, headingsBegin);
  scan.pieces.next.inside = isInside ? 1 : 0;
  if (isWhole(kind) || (kind === "row" && end - from <= limit)) addWhole(scan, from, end, price, limit);
  else addSentences(scan, from, end, price, limit, isInner(scan, kind) ? cost.INNER_COST : 0);
  scan.kind = kind;
}

/** Records the block that a line starts, before its pieces are added. */
function openBlock(scan: Scan, kind: LineKind, from: number, begin: number, end: number): void {
  const { text } = scan;
  const piece = scan.pieces.begins.length;
  scan.paragraphPiece = kind === "text" && (scan.blank || scan.kind !== "text") ? piece : -1;
  if (kind === "heading" || kind === "fence") scan.pieces.next.isFloor = true;
  if (kind === "heading") {
    if (scan.headingsBegin < 0) scan.headingsBegin = from;
    const level = lines.headingLevel(text, begin, end);
    scan.headings.push({ piece, level, title: lines.headingTitle(text, begin, end) });
    return;
  }
  scan.headingsBegin = -1;
  if (kind === "item" && scan.listPiece < 0) scan.listPiece = piece;
  if (kind === "row" && scan.tablePiece < 0) scan.tablePiece = piece;
  if (kind === "row") scan.tableRows++;
  // The second row shows that the first one is a head.
  if (scan.tableHasHead && scan.tableRows === 2 && piece === scan.tablePiece + 1)
    frameBlock(
      scan,
      scan.tablePiece,
      piece + 1,
      scan.text.slice(scan.pieces.begins[scan.tablePiece], end),
      "",
    );
  if (kind === "fence") {
    scan.fencePiece = piece;
    scan.fenceCode = text.charCodeAt(begin);
    scan.fenceLength = lines.fenceLength(text, begin, end);
    const marks = text.slice(from, begin + scan.fenceLength);
    // Front matter is parsed like a code block but repeats no fence.
    if (scan.fenceCode !== DASH) frameBlock(scan, piece, piece + 1, text.slice(from, end), `\n${marks}`);
  }
}

/**
 * Records the head and tail that parts of the block from piece `first` on repeat, unless they would leave too little space for the
 * text. The following pieces belong to the block.
 */
function frameBlock(scan: Scan, first: number, body: number, head: string, after: string): void {
  const before = `${head}\n`;
  if (before.length + after.length > scan.sizes.chunk * FRAME_SHARE_MAX) return;
  const { frames, blocks, next } = scan.pieces;
  next.block = frames.length;
  frames.push({ first, body, last: Infinity, before, after });
  for (let piece = first; piece < blocks.length; piece++) blocks[piece] = next.block;
}

/** Largest share of a chunk for repeated parts. */
const FRAME_SHARE_MAX = 0.5;

/** Ends the current block. Later chunks share no text with it. */
function endBlock({ pieces }: Scan): void {
  const frame = pieces.frames[pieces.next.block];
  if (frame !== undefined) frame.last = pieces.begins.length - 1;
  pieces.next.block = -1;
  pieces.next.isFloor = true;
}

/** Whether a line continues the sentence of the previous line. */
function runsOn(scan: Scan, kind: LineKind, begin: number): boolean {
  if (scan.blank || scan.headingsBegin >= 0 || (kind !== "text" && kind !== "quote")) return false;
  const isParagraph = kind === "quote" ? scan.kind === "quote" : scan.kind === "text" || scan.kind === "item";
  const code = lastCode(scan);
  if (!isParagraph) return false;
  // A closing bracket always continues.
  const closes = CLOSING_BRACKETS.has(scan.text.charCodeAt(begin));
  return closes || (!endsSentence(code) && code !== COLON && code !== SEMICOLON);
}
/** `)`, `]` and `}`. */
const CLOSING_BRACKETS: ReadonlySet<number> = new Set([0x29, 0x5d, 0x7d]);
const DASH = 0x2d;
const COLON = 0x3a;
const SEMICOLON = 0x3b;

function isWhole(kind: LineKind): boolean {
  return kind === "heading" || kind === "fence" || kind === "rule";
}

function isInner(scan: Scan, kind: LineKind): boolean {
  return kind !== "text" || scan.listPiece >= 0;
}

/** A list ends at an unindented line, unless that line continues the item's paragraph. */
function leavesList(scan: Scan, kind: LineKind, indent: number): boolean {
  return kind !== "item" && indent < LIST_INDENT && (scan.blank || kind !== "text");
}

/** Indentation of the text of the narrowest list item, in columns. */
const LIST_INDENT = 2;

function closeList(scan: Scan): void {
  if (scan.listPiece >= 0) keepWhole(scan, scan.listPiece);
  scan.listPiece = -1;
}

function closeTable(scan: Scan): void {
  if (scan.tablePiece >= 0) keepWhole(scan, scan.tablePiece);
  if (scan.tablePiece >= 0) endBlock(scan);
  scan.tablePiece = -1;
  scan.tableRows = 0;
  scan.tableHasHead = false;
}

function closeFence(scan: Scan): void {
  if (scan.fencePiece >= 0) keepWhole(scan, scan.fencePiece);
  if (scan.fencePiece >= 0) endBlock(scan);
  scan.fencePiece = -1;
}

/** Raises the cost of every cut inside the block from piece `first` to here, if it fits into a chunk. */
function keepWhole(scan: Scan, first: number): void {
  const { begins, ends, costs } = scan.pieces;
  const last = begins.length - 1;
  if ((ends[last] ?? 0) - (begins[first] ?? 0) > scan.sizes.room) return;
  for (let piece = first + 1; piece <= last; piece++) costs[piece] = (costs[piece] ?? 0) + cost.WHOLE_COST;
}

function readFenced(scan: Scan, from: number, begin: number, end: number, indent: number): void {
  const { text, pieces } = scan;
  const closes = lines.closesFence(text, begin, end, scan.fenceCode, scan.fenceLength);
  const isFirst = scan.fencePiece === pieces.begins.length - 1;
  let price = scan.blank ? cost.CODE_BLOCK_COST : cost.CODE_LINE_COST;
  if (indent > 0) price += cost.INDENTED_COST;
  if (isFirst || closes) price = cost.PAIR_COST;
  pieces.next.inside = 0;
  addWhole(scan, from, end, price, limitOf(scan, from, -1));
  if (closes) closeFence(scan);
}

function isUnderline(scan: Scan, begin: number, end: number, indent: number): boolean {
  return (
    scan.paragraphPiece >= 0 &&
    begin >= scan.commentEnd &&
    !scan.blank &&
    scan.listPiece < 0 &&
    indent < lines.CODE_INDENT &&
    lines.underlineLevel(scan.text, begin, end) > 0
  );
}

/** Turns the one-line paragraph before a line of `===` or `---` into a heading. */
function readUnderline(scan: Scan, begin: number, end: number): void {
  const { text, sizes, pieces } = scan;
  const level = lines.underlineLevel(text, begin, end);
  const piece = scan.paragraphPiece;
  const from = pieces.begins[piece] ?? 0;
  const until = pieces.ends[pieces.ends.length - 1] ?? 0;
  if ((pieces.costs[piece] ?? 0) < cost.PAIR_COST) pieces.costs[piece] = cost.HEADING_COSTS[level] ?? 0;
  scan.headings.push({ piece, level, title: lines.headingTitle(text, from, until) });
  pieces.next.floor = from;
  pieces.floors.fill(from, piece);
  addWhole(scan, begin, end, cost.GLUE_COST, sizes.room);
  scan.headingsBegin = from;
  scan.paragraphPiece = -1;
  scan.kind = "heading";
}

/** Returns the maximum length of a line's first piece: shorter after headings and in a block, so that they fit into one chunk. */
function limitOf({ sizes, pieces }: Scan, from: number, headingsBegin: number): number {
  const frame = pieces.frames[pieces.next.block];
  const room = Math.min(
    sizes.room,
    sizes.chunk - (frame === undefined ? 0 : frame.before.length + frame.after.length),
  );
  if (headingsBegin < 0) return room;
  return Math.max(sizes.grain, room - (from - headingsBegin));
}

/** Whether a piece includes its indentation, which matters in code and lists, unless it takes too much of a chunk. */
function keepsIndent(scan: Scan, lineBegin: number, begin: number): boolean {
  if (begin - lineBegin > Math.min(INDENT_UNITS_MAX, scan.sizes.grain)) return false;
  const code = scan.text.charCodeAt(lineBegin);
  return code === 0x20 || code === 0x09;
}

const INDENT_UNITS_MAX = 40;
const TAB_COLUMNS = 4;

function columns(text: string, from: number, to: number): number {
  let count = 0;
  for (let at = from; at < to; at++) count += text.charCodeAt(at) === 0x09 ? TAB_COLUMNS : 1;
  return count;
}
