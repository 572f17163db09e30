import type { Command } from "commander";
import { absolute, nothingSynced, openOperator, printJson } from "../state/ask.ts";
import type { Context } from "../output/context.ts";
import type { CommonOptions } from "../output/options.ts";

interface PauseOptions extends CommonOptions {
  readonly json?: boolean;
}

/** `kbsync pause [SOURCE]`: nothing is sent until `kbsync resume`. */
export function addPause(program: Command, context: Context): void {
  program
    .command("pause")
    .description("send nothing until `kbsync resume`, across restarts; changes are still noticed")
    .argument("[source]", "folder of one source (default: all)")
    .option("--json", "print the sources as JSON")
    .action(async (source: string | undefined, options: PauseOptions) => {
      const folders = await setPausedWherever(context, source, options, true);
      if (options.json === true) printJson(context, { paused: folders });
      else for (const folder of folders) context.stdout.write(`paused: ${folder}\n`);
    });
}

/** Through the daemon that runs, else in the ledger. Returns the folders of the sources. */
export async function setPausedWherever(
  context: Context,
  source: string | undefined,
  options: PauseOptions,
  paused: boolean,
): Promise<readonly string[]> {
  const operator = openOperator(context, options);
  const done = await operator.act(paused ? "pause" : "resume", absolute("folder", context, source));
  if (done === undefined || done.answer.sources.length === 0) throw nothingSynced(operator.config.stateDir);
  return done.answer.sources;
}
