import type { Command } from "commander";
import { buildProgram } from "../../../src/cli/program.ts";
import { commandTable, type CommandTable } from "../../../src/cli/manual/command-table.ts";

/** The program as it is, with nothing to run it on. */
export function wholeProgram(): Command {
  return buildProgram({
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

export const table: CommandTable = commandTable(wholeProgram());
