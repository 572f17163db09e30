import { resolve } from "node:path";
import type { Command } from "commander";
import { KbsyncError } from "../../lib/failure.ts";
import { shellWord } from "../../lib/shell-word.ts";
import type { Tier } from "../../wire/primitives.ts";
import { openOperator, type Operator } from "../state/ask.ts";
import { addFolders } from "../state/configured-folders.ts";
import { reloadDaemon, runningDaemon } from "../state/reload-daemon.ts";
import type { Context } from "../output/context.ts";
import { tierOption, type CommonOptions } from "../output/options.ts";

interface AddOptions extends CommonOptions {
  readonly tier?: Tier;
  readonly owner?: string;
}

/** `kbsync add DIR…`: adds folders to the configuration, and to the daemon that runs with it. */
export function addAdd(program: Command, context: Context): void {
  program
    .command("add")
    .description("add folders to the configuration; a running daemon syncs them at once")
    .argument("<dir...>", "folders to sync")
    .addOption(tierOption())
    .option("--owner <id>", "owner of their documents (default: one per folder)")
    .action(async (dirs: readonly string[], options: AddOptions) => add(context, dirs, options));
}

async function add(context: Context, dirs: readonly string[], options: AddOptions): Promise<void> {
  const operator = openOperator(context, options);
  const { file, sources } = operator.config;
  const folders = dirs.map((dir) => resolve(context.cwd, dir));
  if (file === undefined) throw noConfiguration(operator, folders);
  const known = new Set(sources.map(({ absolutePath }) => absolutePath));
  const fresh = [...new Set(folders)].filter((folder) => !known.has(folder));
  for (const folder of folders.filter((each) => known.has(each)))
    context.stdout.write(`${folder} is already in ${file}\n`);
  if (fresh.length === 0) return;
  await runningDaemon(operator);
  const { tier, owner: ownerId } = options;
  const wish = { ...(tier && { tier }), ...(ownerId && { ownerId }) };
  const added = fresh.map((path) => ({ path, ...wish }));
  addFolders(file, added, operator.config.stateDir, context);
  context.stdout.write(`added to ${file}: ${fresh.join(", ")}\n`);
  const isLive = await reloadDaemon(operator, (live) => fresh.every((folder) => live.includes(folder)));
  context.stdout.write(isLive ? "the running daemon is syncing it\n" : NEXT_START);
}

const NEXT_START = "no running daemon syncs it: `kbsync sync` or the next `kbsync up` does\n";

/** `config_not_found`: there is no file to edit. Folders that were named on the command line belong in it too. */
function noConfiguration(operator: Pick<Operator, "sources">, folders: readonly string[]): KbsyncError {
  const named = operator.sources();
  const all = new Set([...named.map(({ absolutePath }) => absolutePath), ...folders]);
  const [tier, ...tiers] = new Set(named.map(({ collection }) => collection));
  const option = tier === undefined || tiers.length > 0 ? "" : ` --tier ${tier}`;
  const init = `kbsync init ${[...all].map(shellWord).join(" ")}${option}`;
  const restart =
    named.length === 0 ? "" : " Then stop kbsync, and start it with `kbsync up` and no folders.";
  return new KbsyncError("there is no configuration to add folders to", {
    code: "config_not_found",
    hint: `\`${init}\` writes one; --config names another.${restart}`,
  });
}
