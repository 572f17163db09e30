import type { Command } from "commander";
import { absoluteFolder, openOperator, printJson } from "../state/ask.ts";
import type { Context } from "../output/context.ts";
import type { CommonOptions } from "../output/options.ts";

interface RescanOptions extends CommonOptions {
  readonly json?: boolean;
}

/** `kbsync rescan [SOURCE]`: has the running daemon scan everything now. */
export function addRescan(program: Command, context: Context): void {
  program
    .command("rescan")
    .description("make the running daemon scan the whole folder now")
    .argument("[source]", "folder of a source (default: all sources)")
    .option("--json", "print the sources as JSON")
    .action(async (source: string | undefined, options: RescanOptions) => {
      const operator = openOperator(context, options);
      const { sources } = await operator.need("rescan", absoluteFolder(context, source));
      if (options.json === true) printJson(context, { rescanning: sources });
      else for (const folder of sources) context.stdout.write(`scanning ${folder}\n`);
    });
}
