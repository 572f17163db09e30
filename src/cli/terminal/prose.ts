import type { Context } from "../output/context.ts";
import { completeCommands } from "../output/hint.ts";
import { cellsOf } from "./wrap.ts";

/** A word, or several where some stand between backticks: a command that is broken cannot be pasted. */
const WORDS = /(?:`[^`]*`|\S)+/g;
/** A command outside backticks. */
const BARE_COMMAND = /(?:^|\s)kbsync [a-z-]/;
/** A name with its value in a column of its own, or an indented text. */
const HANGING = /^\s*(?:\S+ {2,})?/;

/** Stands for a blank that no line is broken at. A noncharacter of Unicode: no name that is valid text has it. */
const UNBROKEN = "\ufdd0";

/** Returns a path that `prose` and `wrappedProse` keep whole, because a path in two lines cannot be pasted. Pure. */
export function unbroken(path: string): string {
  return path.replaceAll(" ", UNBROKEN);
}

/** Returns a message for standard output as it is written there: on a terminal, its commands are completed and it is wrapped. */
export function prose({ stdout, invocation }: Pick<Context, "stdout" | "invocation">, text: string): string {
  return stdout.isTTY
    ? wrappedProse(completeCommands(text, invocation), stdout.columns)
    : text.replaceAll(UNBROKEN, " ");
}

/**
 * Breaks the long lines of messages at white space, so that each takes at most `cells` terminal cells, and indents what follows as
 * far as the text of its line. Leaves words, commands and short lines as they are. Pure.
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
  const [head] = HANGING.exec(line) ?? [""];
  const hanging = " ".repeat(cellsOf(head) * 2 > cells ? 0 : cellsOf(head));
  const lines: string[] = [];
  let current = head;
  let isEmpty = true;
  for (const word of line.slice(head.length).match(WORDS) ?? []) {
    if (!isEmpty && cellsOf(current) + 1 + cellsOf(word) > cells) {
      lines.push(current);
      current = hanging;
      isEmpty = true;
    }
    current += isEmpty ? word : ` ${word}`;
    isEmpty = false;
  }
  return [...lines, current].join("\n");
}
