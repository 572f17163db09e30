import { join } from "node:path";
import type { Command } from "commander";
import type { DaemonActivity } from "../../wire/daemon-files.ts";
import { LOG_LINES_DEFAULT, LOG_LINES_MAX } from "../../wire/daemon.ts";
import { locatedPath, nothingSynced, openOperator } from "../state/ask.ts";
import type { Context } from "../output/context.ts";
import { unbroken } from "../terminal/prose.ts";
import { localTime } from "../output/progress.ts";
import { visibleLine } from "../output/visible.ts";
import { type CommonOptions, wholeNumber, jsonOption } from "../output/options.ts";

interface LogOptions extends CommonOptions {
  readonly lines: number;
  readonly follow?: boolean;
  readonly json?: boolean;
}

/** `kbsync log`: the recent actions of the daemon. */
export function addLog(program: Command, context: Context): void {
  program
    .command("log")
    .description("list recent changes, newest last; works without a daemon too")
    .argument("[path]", "only this file, or everything below this folder")
    .option("-n, --lines <n>", "number of entries", wholeNumber(0, LOG_LINES_MAX), LOG_LINES_DEFAULT)
    .option("-f, --follow", "keep running and print new entries as they come")
    .addOption(jsonOption())
    .action(async (path: string | undefined, options: LogOptions) => log(context, path, options));
}

async function log(context: Context, path: string | undefined, options: LogOptions): Promise<void> {
  const operator = openOperator(context, options);
  const query = { limit: options.lines, ...locatedPath(operator, path) };
  const show = (activity: DaemonActivity): void =>
    context.stdout.write(
      options.json === true
        ? `${JSON.stringify(activity)}\n`
        : activityLine(withFolder(activity, operator.config.sources.length)),
    );
  if (options.follow === true) {
    await operator.need("log", { ...query, follow: "true" }, show);
    return;
  }
  const found = await operator.act("log", query);
  if (found === undefined) throw nothingSynced(operator.config.stateDir);
  for (const activity of found.answer.activities) show(activity);
}

/** With several sources a path alone does not identify the file. */
export function withFolder<
  T extends { readonly source: string; readonly path: string; readonly from?: string | undefined },
>(activity: T, sources: number): T {
  const { source, path, from } = activity;
  if (sources < 2 || path === "") return activity;
  return { ...activity, path: join(source, path), ...(from !== undefined && { from: join(source, from) }) };
}

/** `2026-11-21 16:40:05  create    notes/a.md`, and what became of it where it was not done. */
export function activityLine({ atMs, action, path, from, outcome, message }: DaemonActivity): string {
  const what = from === undefined || from === path ? shown(path) : `${shown(from)} -> ${shown(path)}`;
  const words = outcome === "done" ? [] : [outcome === "parked" ? "tried again later" : outcome];
  const end = [...words, ...(message === undefined ? [] : [message])].join(", ");
  return `${localTime(atMs)}  ${action.padEnd(8)}  ${what}${end === "" ? "" : `: ${visibleLine(end)}`}\n`;
}

function shown(path: string): string {
  return unbroken(visibleLine(path));
}
