import { Argument, type Command, Option } from "commander";
import { KbsyncError } from "../../lib/failure.ts";
import type { Context } from "../output/context.ts";
import { commandTable } from "../manual/command-table.ts";
import type { CommonOptions } from "../output/options.ts";
import { COMPLETION_VALUES, type CompletionValues } from "./completion-values.ts";

const SHELLS = ["bash", "zsh", "fish"] as const;
type Shell = (typeof SHELLS)[number];

interface CompletionOptions extends CommonOptions {
  readonly list?: CompletionValues;
}

/** `kbsync completion`: prints what a shell completes the program's commands and options with. */
export function addCompletion(program: Command, context: Context): void {
  program
    .command("completion")
    .description("print the completion script of a shell")
    .addArgument(new Argument("[shell]", "the shell").choices(SHELLS))
    .addOption(
      new Option("--list <values>", "print the folders or agents that completions offer").choices(
        COMPLETION_VALUES,
      ),
    )
    .action(async (shell: Shell | undefined, options: CompletionOptions) => {
      if (options.list !== undefined) {
        context.stdout.write(await valueLines(context, options.list, options));
        return;
      }
      if (shell === undefined) {
        throw new KbsyncError(`name a shell: ${SHELLS.join(", ")}`, { code: "usage" });
      }
      context.stdout.write(await completionOf(program, shell));
    });
}

/** One value on each line. A name with a line end cannot be completed. */
async function valueLines(context: Context, kind: CompletionValues, options: CommonOptions): Promise<string> {
  const { completedAgents, completedSources } = await import("./completion-values.ts");
  const values =
    kind === "sources" ? completedSources(context, options) : await completedAgents(context, options);
  return values.flatMap((value) => (/[\n\r]/.test(value) ? [] : `${value}\n`)).join("");
}

/** The completion script of a shell, from the program's own table of commands. */
export async function completionOf(program: Command, shell: Shell): Promise<string> {
  const table = commandTable(program);
  switch (shell) {
    case "bash":
      return (await import("../manual/bash.ts")).bashCompletion(table);
    case "zsh":
      return (await import("../manual/zsh.ts")).zshCompletion(table);
    case "fish":
      return (await import("../manual/fish.ts")).fishCompletion(table);
  }
}
