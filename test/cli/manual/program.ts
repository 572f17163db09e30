import type { Command } from "commander";
import { buildProgram } from "../../../src/cli/command-line.ts";
import { cliContext } from "../context.ts";
import { commandTable, type CommandTable } from "../../../src/cli/manual/command-table.ts";

/** The program with the commands that a command line loads, and with nothing to run them on. */
export async function programFor(...args: readonly string[]): Promise<Command> {
  const context = cliContext({ nowMs: () => 0 });
  return await buildProgram(context, args);
}

/** The program with all commands. */
export const wholeProgram = (): Promise<Command> => programFor();

export const table: CommandTable = commandTable(await wholeProgram());
