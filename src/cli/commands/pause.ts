import type { Command } from "commander";
import { absoluteFolder, nothingSynced, openOperator, printJson } from "../state/ask.ts";
import type { Context } from "../output/context.ts";
import { type CommonOptions, jsonOption } from "../output/options.ts";

interface PauseOptions extends CommonOptions {
  readonly json?: boolean;
}

/** `kbsync pause [SOURCE]`: nothing is sent until `kbsync resume`. */
export function addPause(program: Command, context: Context): void {
  addCommand(program, context, "pause", {
    description: "send nothing until `kbsync resume`, even after a restart; changes are still noticed",
    done: "paused",
  });
}

/** `kbsync resume [SOURCE]`: continues after `kbsync pause`. */
export function addResume(program: Command, context: Context): void {
  addCommand(program, context, "resume", {
    description: "continue after `kbsync pause`, and send what has changed meanwhile",
    done: "resumed",
  });
}

function addCommand(
  program: Command,
  context: Context,
  name: "pause" | "resume",
  { description, done }: { readonly description: string; readonly done: string },
): void {
  program
    .command(name)
    .description(description)
    .argument("[source]", "folder of a source (default: all sources)")
    .addOption(jsonOption())
    .action(async (source: string | undefined, options: PauseOptions) => {
      const operator = openOperator(context, options);
      const request = { ...absoluteFolder(context, source), paused: name === "pause" };
      const folders = (await operator.act("pause", request))?.answer.sources ?? [];
      if (folders.length === 0) throw nothingSynced(operator.config.stateDir);
      if (options.json === true) printJson(context, { [done]: folders });
      else for (const folder of folders) context.stdout.write(`${done}: ${folder}\n`);
    });
}
