import type { Command } from "commander";
import { buildProgram } from "../../../src/cli/program.ts";
import { commandTable, type CommandTable } from "../../../src/cli/manual/command-table.ts";

/** The program with all commands, and with nothing to run them on. */
export async function wholeProgram(): Promise<Command> {
  return await buildProgram({
    stdout: {
      write: () => undefined,
      draw: () => undefined,
      bar: () => undefined,
      isTTY: false,
      columns: 80,
    },
    stderr: { write: () => undefined },
    stderrIsTTY: false,
    env: {},
    cwd: "/",
    signal: new AbortController().signal,
    nowMs: () => 0,
    exitCode: 0,
  });
}

export const table: CommandTable = commandTable(await wholeProgram());
