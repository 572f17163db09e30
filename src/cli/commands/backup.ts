import { existsSync } from "node:fs";
import { resolve } from "node:path";
import type { Command } from "commander";
import type { BackupReport } from "../../backup/make.ts";
import { filesOf, filesWords, type FileStorage } from "../../config/schema/files.ts";
import { loadConfig } from "../../config/load.ts";
import { sourceAround } from "../../config/folders.ts";
import { KbsyncError } from "../../lib/failure.ts";
import { printJson } from "../state/ask.ts";
import type { Context } from "../output/context.ts";
import { EXIT } from "../output/exit-code.ts";
import { ledgerFolders } from "../state/sources.ts";
import { type CommonOptions, configRequest, jsonOption } from "../output/options.ts";
import { finishRestore } from "../state/pending-restore.ts";
import { counted, thousands } from "../../lib/counted.ts";
import { stateFolder } from "../state/state-folder.ts";
import { programVersion } from "../output/version.ts";

interface BackupCommandOptions extends CommonOptions {
  readonly json?: boolean;
}

/** Files left out that are named. */
const NAMED = 10;

/** `kbsync backup TO`: a copy of the state folder, while it is used. */
export function addBackup(program: Command, context: Context): void {
  program
    .command("backup")
    .description("copy ledger, store and uploaded files to another folder; kbsync may keep running")
    .argument("<to>", "a new folder for the backup, or a folder in which each backup gets its own")
    .addOption(jsonOption())
    .action(async (to: string, options: BackupCommandOptions) => backup(context, to, options));
}

async function backup(context: Context, to: string, options: BackupCommandOptions): Promise<void> {
  const { stateDir, sources, service } = loadConfig(configRequest(context, options));
  const files = filesOf(service);
  const isInDatabase = !("apiUrl" in service) && service.database !== undefined;
  const target = resolve(context.cwd, to);
  refuseWatched(target, [...sources.map(({ absolutePath }) => absolutePath), ...ledgerFolders(stateDir)]);
  finishRestore(stateDir);
  // Loaded here, because no other command needs the code of the store.
  const [{ makeBackup }, { backupParts }] = await Promise.all([
    import("../../backup/make.ts"),
    import("../state/state-parts.ts"),
  ]);
  const parts = backupParts(stateFolder(stateDir), files === undefined, isInDatabase);
  if (isInDatabase && !parts.some(({ database }) => existsSync(database))) throw onlyDatabase(stateDir);
  const report = await makeBackup({
    stateDir,
    parts,
    target,
    version: programVersion(),
    now: new Date(context.nowMs()),
    signal: context.signal,
  });
  if (options.json === true) printJson(context, report);
  else context.stdout.write(`${backupText(report)}${files === undefined ? "" : filesElsewhere(files)}`);
  if (isInDatabase) context.stderr.write(`${NOT_IN_BACKUP} ${DATABASE_BACKUP}\n`);
  context.exitCode = report.missing.length === 0 ? EXIT.done : EXIT.filesFailed;
}

const NOT_IN_BACKUP =
  "Documents, keys and uploaded files are not in it: the documents and keys are in the database.";
const DATABASE_BACKUP =
  "Back the database up with PostgreSQL's own tools: pg_dump, or pg_basebackup with an archive of the log (docs/SCALE.md). `kbsync doctor` checks what copies it.";

/** A state folder whose service uses a database, and that no daemon uses, contains only the key. */
function onlyDatabase(stateDir: string): KbsyncError {
  return new KbsyncError(
    `everything is in the database; there is nothing to back up in the state folder ${stateDir}`,
    {
      code: "backup_nothing",
      subject: stateDir,
      hint: DATABASE_BACKUP,
    },
  );
}

/**
 * Refuses a target in a synced folder: the backup would become documents, with the upload addresses, which alone grant access.
 */
function refuseWatched(target: string, folders: readonly string[]): void {
  const source = sourceAround(target, folders);
  if (source === undefined) return;
  throw new KbsyncError(`the backup ${target} would lie inside the source ${source}`, {
    code: "backup_in_source",
    subject: target,
    hint: "It would be sent to the service as documents. Name a folder elsewhere, best on another disk.",
  });
}

function filesElsewhere(files: FileStorage): string {
  return `not in it: uploaded files, which are in ${filesWords(files)}; back them up there\n`;
}

/** The result for a person. */
export function backupText({ path, files, bytes, missing }: BackupReport): string {
  const lines = [`backed up ${counted(files, "file")}, ${megabytes(bytes)}, to ${path}`];
  lines.push(...namedLines("not in it", missing));
  if (missing.length > 0) lines.push("For details, run `kbsync doctor`.");
  return `${lines.join("\n")}\n`;
}

/** The first files that were left out, and the number of the others. */
export function namedLines(what: string, files: BackupReport["missing"]): string[] {
  const lines = files.slice(0, NAMED).map(({ path, reason }) => `${what}: ${path} (${reason})`);
  if (files.length > NAMED) lines.push(`… and ${thousands(files.length - NAMED)} more`);
  return lines;
}

/** Bytes for a person. */
export function megabytes(bytes: number): string {
  return bytes < 1e6
    ? `${thousands(Math.ceil(bytes / 1000))} kB`
    : `${thousands(Math.round(bytes / 1e6))} MB`;
}
