import type { Command } from "commander";
import { printJson } from "../state/ask.ts";
import type { Context } from "../output/context.ts";
import type { CommonOptions } from "../output/options.ts";
import { setPausedWherever } from "./pause.ts";

interface ResumeOptions extends CommonOptions {
  readonly json?: boolean;
}

/** `kbsync resume [SOURCE]`: goes on after `kbsync pause`. */
export function addResume(program: Command, context: Context): void {
  program
    .command("resume")
    .description("go on after `kbsync pause`, with all that changed meanwhile")
    .argument("[source]", "folder of one source (default: all)")
    .option("--json", "print the sources as JSON")
    .action(async (source: string | undefined, options: ResumeOptions) => {
      const folders = await setPausedWherever(context, source, options, false);
      if (options.json === true) printJson(context, { resumed: folders });
      else for (const folder of folders) context.stdout.write(`resumed: ${folder}\n`);
    });
}
