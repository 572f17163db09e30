import { isatty } from "node:tty";
import type { Command, HelpConfiguration } from "commander";
import { proseCells, wrappedProse } from "./prose.ts";

/** Narrowest column of descriptions; with less room, they go below their terms. */
const DESCRIPTION_CELLS_MIN = 28;
const INDENT = 2;
const INDENT_BELOW = 6;

/** Lays out help and usage errors of a command, and of commands that are added later, for the terminal's width. */
export function fitTerminal(command: Command): Command {
  return command
    .configureHelp({ minWidthToWrap: DESCRIPTION_CELLS_MIN, formatItem })
    .configureOutput({ getOutHelpWidth: helpCells });
}

/** Returns the width of help texts. */
function helpCells(): number {
  return proseCells(isatty(1) ? process.stdout.columns : undefined);
}

/** Wraps a text below a help text to the same width. */
export function helpText(text: string): string {
  return wrappedProse(text, helpCells());
}

/** Formats a term with its description, side by side if there is room. */
const formatItem: NonNullable<HelpConfiguration["formatItem"]> = (term, termWidth, description, helper) => {
  const cells = helper.helpWidth ?? helpCells();
  const indent = " ".repeat(INDENT);
  if (description === "") return indent + term;
  const left = cells - termWidth - 2 * INDENT;
  if (left < DESCRIPTION_CELLS_MIN) {
    const below = " ".repeat(INDENT_BELOW);
    return `${indent}${term}\n${wrappedProse(`${below}${description}`, cells)}`;
  }
  const hanging = " ".repeat(INDENT + termWidth + INDENT);
  const lines = helper.boxWrap(description, left).replaceAll("\n", `\n${hanging}`);
  return `${indent}${term.padEnd(termWidth + INDENT)}${lines}`;
};
