import type { Command } from "commander";
import type { Retried } from "../../wire/daemon.ts";
import { locatedPath, nothingSynced, openOperator, printJson } from "../state/ask.ts";
import type { Context } from "../output/context.ts";
import { type CommonOptions, jsonOption } from "../output/options.ts";
import { counted } from "../../lib/counted.ts";

interface RetryOptions extends CommonOptions {
  readonly json?: boolean;
}

/** `kbsync retry [PATH]`: retries files that failed or are parked; a running daemon also compares the folder with the disk. */
export function addRetry(program: Command, context: Context): void {
  program
    .command("retry")
    .description(
      "try failed and waiting files again now, and refused deletes; a running daemon also scans the folder",
    )
    .argument("[path]", "a file, or a folder with all below it (default: everything)")
    .addOption(jsonOption())
    .action(async (path: string | undefined, options: RetryOptions) => retry(context, path, options));
}

async function retry(context: Context, path: string | undefined, options: RetryOptions): Promise<void> {
  const operator = openOperator(context, options);
  const done = await operator.act("retry", locatedPath(operator, path));
  if (done === undefined || done.answer.sources.length === 0) throw nothingSynced(operator.config.stateDir);
  const { answer, isLive } = done;
  if (options.json === true) printJson(context, { retried: answer.sources, daemon: isLive });
  else context.stdout.write(retryWords(answer.sources, isLive));
}

/** `3 files and 1 delete are tried again now, and the folder is scanned`. */
export function retryWords(sources: readonly Retried[], isRunning: boolean): string {
  const files = sources.reduce((sum, { failed, parked, skipped }) => sum + failed + parked + skipped, 0);
  const deletes = sources.reduce((sum, source) => sum + source.deletes, 0);
  const parts: string[] = [];
  if (files > 0) parts.push(counted(files, "file"));
  if (deletes > 0) parts.push(counted(deletes, "delete"));
  const none = "no file failed, and none waits";
  if (parts.length === 0)
    return isRunning ? `${none}; the folder is scanned now\n` : `nothing to retry: ${none}\n`;
  const verb = files + deletes === 1 ? "is" : "are";
  return `${parts.join(" and ")} ${isRunning ? `${verb} tried again now, and the folder is scanned` : "will be tried again by the next sync"}\n`;
}
