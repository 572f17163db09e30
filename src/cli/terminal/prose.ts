import { completeCommands, type Invocation } from "../output/hint.ts";
import { cellsOf } from "./wrap.ts";

/** A word with the white space before it, or several words where some stand between backticks: a command that is broken cannot be pasted. */
const WORDS = /\s*(?:`[^`]*`|\S)+/g;
/** A command outside backticks: on a line of its own, in a column, or after a colon. */
const BARE_COMMAND = /(?:^\s*|\s{2}|: )(?:sudo )?(?:kbsync|npm run -s kbsync --) [a-z-]/;
/** The end of a column: what is below another column's text belongs to it. */
const COLUMN_END = /\S {2,}(?=\S)/g;
/** Longest line of a message. Longer ones are hard to read, however wide the terminal is. */
const CELLS_MAX = 100;
/** Width of an output that is no terminal, and of a terminal that does not say. */
const CELLS_DEFAULT = 80;

/** Stands for a blank that no line is broken at. A noncharacter of Unicode: no name that is valid text has it. */
const UNBROKEN = "\ufdd0";

/** The facts that decide the width of a message. */
interface Width {
  readonly isTTY: boolean;
  /** Undefined or 0: the terminal does not say. */
  readonly columns: number | undefined;
}

/** Returns a path that `prose` and `wrappedProse` keep whole, because a path in two lines cannot be pasted. Pure. */
export function unbroken(path: string): string {
  return path.replaceAll(" ", UNBROKEN);
}

/** Returns the length of the longest line of a message on a terminal of this width; 0 or undefined if it does not say. Pure. */
export function proseCells(columns: number | undefined): number {
  return Math.min(columns || CELLS_DEFAULT, CELLS_MAX);
}

/** Returns a message for standard output as it is written there: its commands are completed, and on a terminal it is wrapped. */
export function prose(
  { stdout, invocation }: { readonly stdout: Width; readonly invocation?: Invocation | undefined },
  text: string,
): string {
  return documentProse(stdout, completeCommands(text, invocation));
}

/** Returns a message that quotes documents: none of its commands are completed. */
export function documentProse({ isTTY, columns }: Width, text: string): string {
  return isTTY ? wrappedProse(text, proseCells(columns)) : text.replaceAll(UNBROKEN, " ");
}

/**
 * Breaks the long lines of messages at white space, so that each takes at most `cells` terminal cells, and indents what follows as
 * far as the text of its line, or of its last column. Leaves words, commands and short lines as they are. Pure.
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

/** The start of a line that its other lines are indented by: columns and an indentation that leave half of the width at least. */
function headOf(line: string, cells: number): string {
  const ends = [...line.matchAll(COLUMN_END)].map(({ index, 0: end }) => index + end.length);
  const columns = [/^\s*/.exec(line)?.[0].length ?? 0, ...ends].map((end) => line.slice(0, end));
  return columns.findLast((each) => cellsOf(each) * 2 <= cells) ?? "";
}
