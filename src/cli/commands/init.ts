import { existsSync } from "node:fs";
import { resolve } from "node:path";
import type { Command } from "commander";
import { CONFIG_FILE_NAME } from "../../config/config-file.ts";
import { configText, type Wishes } from "../../config/template.ts";
import { KbsyncError } from "../../lib/failure.ts";
import { packagePath } from "../../lib/package.ts";
import type { Tier } from "../../wire/primitives.ts";
import type { Context } from "../output/context.ts";
import { completeCommand } from "../output/hint.ts";
import { bestTier, thisMachine, TIER_WORDS } from "./tier-choice.ts";
import { type CommonOptions, tierOption } from "../output/options.ts";
import { writeConfig } from "../state/config-file.ts";
import { requireFolder } from "../state/folder-there.ts";

/** The flags of `kbsync init`. */
export interface InitOptions extends CommonOptions {
  readonly tier?: Tier;
  readonly apiUrl?: string;
  readonly keyFile?: string;
  readonly force?: boolean;
}

/** `kbsync init`: writes a configuration with comments, for the named folders. */
export function addInit(program: Command, context: Context): void {
  program
    .command("init")
    .description("write a configuration that explains each key")
    .argument("<dir...>", "folders to sync")
    .addOption(tierOption())
    .option("--api-url <url>", "main host of a hosted service, instead of the embedded one")
    .option("--key-file <file>", "file with the key of the hosted service")
    .option("--force", "overwrite an existing configuration")
    .action(async (folders: readonly string[], options: InitOptions) => init(context, folders, options));
}

async function init(context: Context, folders: readonly string[], options: InitOptions): Promise<void> {
  const file = resolve(context.cwd, options.config ?? CONFIG_FILE_NAME);
  refuseOverwriting(file, options.force === true);
  const wishes = wishesOf(context, folders, options, options.tier ?? (await suitingTier(options)));
  writeConfig(file, configText(wishes), context);
  const next = (line: string): string => completeCommand(line, context.invocation);
  const start = next(`kbsync ${"apiUrl" in wishes.service ? "run" : "up"}`);
  const tierLine = `  ${wishes.collection}: ${TIER_WORDS[wishes.collection]} (\`collection\` in the file changes it)\n`;
  context.stdout.write(
    `wrote ${file}\n${tierLine}  check it   ${next("kbsync doctor")}\n  start it   ${start}\n`,
  );
}

function refuseOverwriting(file: string, force: boolean): void {
  if (force || !existsSync(file)) return;
  throw new KbsyncError(`there is a configuration already: ${file}`, {
    code: "usage",
    subject: file,
    hint: "Edit it, name another file with --config, or overwrite it with --force.",
  });
}

/**
 * The tier if none is named: the best one that this machine runs well, or the cheapest one for a hosted service, whose price is
 * unknown.
 */
async function suitingTier({ apiUrl }: InitOptions): Promise<Tier> {
  return apiUrl === undefined ? bestTier(await thisMachine({})) : "fastest";
}

function wishesOf(
  context: Context,
  folders: readonly string[],
  options: InitOptions,
  collection: Tier,
): Wishes {
  const { apiUrl, keyFile, stateDir } = options;
  if (apiUrl === undefined && keyFile !== undefined)
    throw new KbsyncError("--key-file goes with --api-url", { code: "usage" });
  const schema = packagePath("kbsync.schema.json");
  return {
    folders: folders.map((folder) => knownFolder(resolve(context.cwd, folder))),
    collection,
    service:
      apiUrl === undefined
        ? {}
        : {
            apiUrl,
            dbUrl: apiUrl,
            resourcesUrl: apiUrl,
            pauthkeyFile: keyFile === undefined ? undefined : resolve(context.cwd, keyFile),
          },
    stateDir: stateDir === undefined ? undefined : resolve(context.cwd, stateDir),
    schema: existsSync(schema) ? schema : undefined,
  };
}

/** A named folder must exist: a missing one is a typing error. Throws `source_unusable`. */
function knownFolder(folder: string): string {
  requireFolder(folder);
  return folder;
}
