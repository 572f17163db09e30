import type { Command } from "commander";
import { loadConfig } from "../../config/load.ts";
import { KbsyncError } from "../../lib/failure.ts";
import { migrateDatabase, type Migrated } from "../compose/store.ts";
import type { Context } from "../output/context.ts";
import { type CommonOptions, configRequest } from "../output/options.ts";
import { printJson } from "../state/ask.ts";

interface MigrateOptions extends CommonOptions {
  readonly json?: boolean;
}

/** `kbsync migrate`: upgrades the tables of the configured database. A store in a file is upgraded when it is opened. */
export function addMigrate(program: Command, context: Context): void {
  program
    .command("migrate")
    .description(
      "create the tables of the PostgreSQL database, or bring them up to date; services may keep running, and it may run again",
    )
    .option("--json", "print the versions as JSON")
    .action(async (options: MigrateOptions) => migrate(context, options));
}

async function migrate(context: Context, options: MigrateOptions): Promise<void> {
  const { service } = loadConfig(configRequest(context, options));
  const migrated = "embedded" in service ? await migrateDatabase(service, context.env) : undefined;
  if (migrated === undefined) {
    throw new KbsyncError("the configuration names no database", {
      code: "usage",
      hint: "service.database in the configuration, or KBSYNC_DATABASE, names one. A store without a database is brought up to date at each start.",
    });
  }
  if (options.json === true) printJson(context, shown(migrated));
  else context.stdout.write(migratedText(migrated));
}

function shown({ database, before, after }: Migrated): object {
  return { database, before: before ?? null, after: after ?? null };
}

/** The result for a person. */
function migratedText({ database, before, after }: Migrated): string {
  const version = after?.maximum ?? 0;
  if (before?.maximum === version) return `${database} is up to date: version ${version}\n`;
  const earlier = before === undefined ? "no tables" : `version ${before.maximum}`;
  const works =
    before === undefined || after === undefined || after.minimum > before.maximum
      ? ""
      : `; programs of version ${after.minimum} and later work with it`;
  return `${database}: from ${earlier} to version ${version}${works}\n`;
}
