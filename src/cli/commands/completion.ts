import { Argument, type Command } from "commander";
import type { Context } from "../output/context.ts";
import { commandTable } from "../manual/command-table.ts";

const SHELLS = ["bash", "zsh", "fish"] as const;
type Shell = (typeof SHELLS)[number];

/** `kbsync completion`: prints what a shell completes the program's commands and options with. */
export function addCompletion(program: Command, context: Context): void {
  program
    .command("completion")
    .description("print completions for a shell, to be saved where it looks for them")
    .addArgument(new Argument("<shell>", "the shell").choices(SHELLS))
    .addHelpText(
      "after",
      [
        "",
        "bash: kbsync completion bash > ~/.local/share/bash-completion/completions/kbsync",
        'zsh:  kbsync completion zsh > "${fpath[1]}/_kbsync"',
        "fish: kbsync completion fish > ~/.config/fish/completions/kbsync.fish",
      ].join("\n"),
    )
    .action(async (shell: Shell) => context.stdout.write(await completionOf(program, shell)));
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
