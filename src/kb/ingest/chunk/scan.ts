import { skipSpace } from "./characters.ts";
import * as lines from "./lines.ts";
import type { LineKind } from "./lines.ts";
import { newPieces } from "./pieces.ts";
import type { Cutting, Pieces, Sizes } from "./pieces.ts";
import { newStops } from "./sentences.ts";

/** A Markdown heading and the piece that begins with it. */
export interface Heading {
  readonly piece: number;
  /** 1–6. */
  readonly level: number;
  readonly title: string;
}

/** The structure of a text: its pieces with the cost of each cut, and its headings, ascending. */
export interface Outline {
  readonly pieces: Pieces;
  readonly headings: readonly Heading[];
}

/** State of reading a text line by line. Piece numbers are -1 if no such block is open. */
export interface Scan extends Outline, Cutting {
  readonly headings: Heading[];
  /** Kind of the last line that was not blank, and whether blank lines followed it. */
  kind: LineKind;
  blank: boolean;
  /** Length of that line. */
  lineUnits: number;
  /** Offset of the first of the headings just read, while no text followed them. */
  headingsBegin: number;
  /** First piece of a paragraph that has one line so far: a line of `===` makes it a heading. */
  paragraphPiece: number;
  listPiece: number;
  tablePiece: number;
  tableRows: number;
  tableHasHead: boolean;
  fencePiece: number;
  fenceCode: number;
  fenceLength: number;
  /** Offset of the next `|` from the current line on, so that each is searched once. */
  nextBar: number;
  /** Where the latest comment ends, and the next `-->` from there on, so that each is searched once. */
  commentEnd: number;
  nextCommentEnd: number;
}

/** A scan before its first line. */
export function newScan(text: string, sizes: Sizes): Scan {
  return {
    text,
    sizes,
    pieces: newPieces(),
    headings: [],
    kind: "text",
    blank: true, // a text begins as if behind a blank line
    lineUnits: 0,
    headingsBegin: -1,
    paragraphPiece: -1,
    listPiece: -1,
    tablePiece: -1,
    tableRows: 0,
    tableHasHead: false,
    fencePiece: -1,
    fenceCode: 0,
    fenceLength: 0,
    stops: newStops(text),
    nextBar: -1,
    commentEnd: -1,
    nextCommentEnd: -1,
  };
}

/** Returns the kind of the line `[begin, end)` in its context, indented by `indent` columns. */
export function kindOf(scan: Scan, begin: number, end: number, indent: number): LineKind {
  const isCode = indent >= lines.CODE_INDENT && scan.listPiece < 0;
  if (isInComment(scan, begin, isCode)) return "text";
  const kind = isCode ? "text" : lines.lineKind(scan.text, begin, end);
  if (kind === "rule" && scan.pieces.begins.length === 0 && opensFrontMatter(scan.text, begin, end))
    return "fence";
  return kind === "text" && hasBar(scan, begin, end) ? "row" : kind;
}

/**
 * Whether a line belongs to an HTML comment, which begins with a line and may hold what looks like a heading or a fence (CommonMark,
 * 4.6, condition 2). One that never ends is none.
 */
function isInComment(scan: Scan, begin: number, isCode: boolean): boolean {
  if (begin < scan.commentEnd) return true;
  const { text } = scan;
  if (isCode || !text.startsWith(COMMENT, begin)) return false;
  if (scan.nextCommentEnd < begin) {
    const at = text.indexOf("-->", begin);
    scan.nextCommentEnd = at < 0 ? text.length : at;
  }
  if (scan.nextCommentEnd < text.length) scan.commentEnd = scan.nextCommentEnd;
  return begin < scan.commentEnd;
}

const COMMENT = "<!--";

/** Whether a line is the row of a table without outer bars: its first bar stands between spaces, or the line goes on with a table. */
function hasBar(scan: Scan, begin: number, end: number): boolean {
  const { text } = scan;
  if (scan.nextBar < begin) {
    const at = text.indexOf("|", begin);
    scan.nextBar = at < 0 ? text.length : at;
  }
  const bar = scan.nextBar;
  if (bar >= end) return false;
  return isInTable(scan, begin, end) || isBetweenSpaces(text, bar, end);
}

/** Whether a line with a bar belongs to the table before it: its delimiter row, or a row below that. */
function isInTable(scan: Scan, begin: number, end: number): boolean {
  if (scan.tablePiece < 0 || scan.blank) return false;
  return scan.tableRows === 1 ? lines.isDelimiterRow(scan.text, begin, end) : scan.tableHasHead;
}

const isBetweenSpaces = (text: string, at: number, end: number): boolean =>
  at < end - 1 && text.charCodeAt(at - 1) === SPACE && text.charCodeAt(at + 1) === SPACE;

const SPACE = 0x20;

/** Whether a `---` at the start of a text opens front matter: another one closes it, and no blank line follows. */
function opensFrontMatter(text: string, begin: number, end: number): boolean {
  if (lines.underlineLevel(text, begin, end) !== 2) return false;
  const next = text.indexOf("\n", end) + 1;
  if (next === 0 || skipSpace(text, next, text.length) !== next) return false;
  return /^---[ \t\r]*$/m.test(text.slice(next, next + FRONT_MATTER_UNITS_MAX));
}

/** Front matter is some lines; a `---` far below is a rule. */
const FRONT_MATTER_UNITS_MAX = 16_384;

/** Returns the last unit of the text read so far; 0 before the first piece. */
export function lastCode(scan: Scan): number {
  const { ends } = scan.pieces;
  const end = ends[ends.length - 1] ?? 0;
  return end === 0 ? 0 : scan.text.charCodeAt(end - 1);
}
