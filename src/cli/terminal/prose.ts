import { completeCommands, type Invocation } from "../output/hint.ts";
import { cellsOf } from "./wrap.ts";

/**
 * A word with the white space before it. Words between backticks stay together, because a command on two lines cannot be
 * pasted.
 */
const WORDS = /\s*(?:`[^`]*`|\S)+/g;
/** A command outside backticks: on a line of its own, in a column, or after a colon. */
const BARE_COMMAND = /(?:^\s*|\s{2}|: )(?:sudo )?(?:\S*\/)?kbsync [a-z-]/;
/** The end of a column; text below another column's text belongs to that column. */
const COLUMN_END = /\S {2,}(?=\S)/g;
/** Longest line of a message: longer ones are hard to read on any terminal. */
const CELLS_MAX = 100;
/** Width of an output that is not a terminal, or that does not report its width. */
const CELLS_DEFAULT = 80;

/** Stands for a space at which no line is broken. A noncharacter of Unicode, which no valid name contains. */
const UNBROKEN = "\ufdd0";

/** The properties of an output that decide the width of a message. */
interface Width {
  readonly isTTY: boolean;
  /** Undefined or 0: unknown. */
  readonly columns: number | undefined;
}

/** Returns a path that `prose` and `wrappedProse` keep whole, because a path in two lines cannot be pasted. Pure. */
export function unbroken(path: string): string {
  return path.replaceAll(" ", UNBROKEN);
}

/** Returns the length of the longest line of a message on a terminal of this width; 0 or undefined: unknown. Pure. */
export function proseCells(columns: number | undefined): number {
  return Math.min(columns || CELLS_DEFAULT, CELLS_MAX);
}

/** Prepares a message for standard output: completes its commands, and wraps it for a terminal. */
export function prose(
  { stdout, invocation }: { readonly stdout: Width; readonly invocation?: Invocation | undefined },
  text: string,
): string {
  return documentProse(stdout, completeCommands(text, invocation));
}

/** Prepares a message that quotes documents: completes none of its commands. */
export function documentProse({ isTTY, columns }: Width, text: string): string {
  return isTTY ? wrappedProse(text, proseCells(columns)) : text.replaceAll(UNBROKEN, " ");
}

/**
 * Breaks long lines at white space, so that each takes at most `cells` terminal cells, and indents the rest to the text of its
 * line, or of its last column. Words, commands and short lines stay unchanged. Pure.
 */
export function wrappedProse(text: string, cells: number): string {
  return text
    .split("\n")
    .map((line) => wrappedLine(line, cells))
    .join("\n")
    .replaceAll(UNBROKEN, " ");
}

function wrappedLine(line: string, cells: number): string {
  if (cellsOf(line) <= cells || BARE_COMMAND.test(line.replaceAll(/`[^`]*`/g, ""))) return line;
  const head = headOf(line, cells);
  const lines: string[] = [];
  let current = head;
  let isEmpty = true;
  for (const word of line.slice(head.length).match(WORDS) ?? []) {
    if (!isEmpty && cellsOf(current) + cellsOf(word) > cells) {
      lines.push(current);
      current = " ".repeat(cellsOf(head));
      isEmpty = true;
    }
    current += isEmpty ? word.trimStart() : word;
    isEmpty = false;
  }
  return [...lines, current].join("\n");
}

/**
 * The start of a line that sets the indentation of its further lines: columns and white space that leave at least half of the
 * width.
 */
function headOf(line: string, cells: number): string {
  const ends = [...line.matchAll(COLUMN_END)].map(({ index, 0: end }) => index + end.length);
  const columns = [/^\s*/.exec(line)?.[0].length ?? 0, ...ends].map((end) => line.slice(0, end));
  return columns.findLast((each) => cellsOf(each) * 2 <= cells) ?? "";
}
