import { existsSync, mkdirSync, readdirSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { flush } from "../lib/durable-file.ts";
import { codeOf, KbsyncError } from "../lib/failure.ts";
import type { Finding } from "../lib/finding.ts";
import { shortageAt, shortageWords } from "../lib/full-disk.ts";
import { copyDurably } from "./durable.ts";
import { clearStage, decideExchange, dropStage, EXCHANGED, finishExchange, stageFolder } from "./exchange.ts";
import { type BackupFile, type Manifest, readManifest } from "./manifest.ts";

/** Options of a restore. The caller holds the locks of the state folder. */
export interface RestoreOptions<Prepared> {
  readonly from: string;
  readonly stateDir: string;
  /** Moves existing files to a folder of their own instead of refusing. */
  readonly force: boolean;
  readonly now: Date;
  readonly signal: AbortSignal;
  /** Checks the restored files in the stage, which has the layout of a state folder. */
  readonly check: (stage: string) => readonly Finding[];
  /** Prepares the restored files in the stage, before the exchange. */
  readonly prepare: (stage: string) => Prepared;
}

/** Result of a restore. */
export interface RestoreReport<Prepared> {
  readonly manifest: Manifest;
  /** Files that were left out because they are missing or damaged in the backup. */
  readonly notRestored: Manifest["missing"];
  readonly files: number;
  readonly bytes: number;
  /** Folder with the previous files; null if there were none. */
  readonly previousState: string | null;
  /** The result of `prepare`. */
  readonly prepared: Prepared;
}

/** Files that must be intact for a restore, because they refer to all others. */
const DATABASES: ReadonlySet<string> = new Set(["ledger.db", "service/kb.sqlite"]);

/**
 * Restores a backup: copies it to a stage, checks all hashes and the databases, and only then exchanges it for the existing
 * files. A crash leaves the old state or, once the exchange is decided, the new one, which the next start completes. Leaves
 * out damaged files other than the databases rather than losing the rest.
 * Throws `backup_invalid`, `backup_newer`, `backup_damaged`, `restore_occupied`, `disk_full`.
 */
export function restoreBackup<Prepared>(options: RestoreOptions<Prepared>): RestoreReport<Prepared> {
  const { from, stateDir, force, signal } = options;
  const manifest = readManifest(from);
  const there = EXCHANGED.filter((name) => isThere(join(stateDir, name)));
  if (there.length > 0 && !force) {
    throw new KbsyncError(`the state folder ${stateDir} is in use: it has ${there.join(", ")}`, {
      code: "restore_occupied",
      subject: stateDir,
      hint: "--force moves the existing files to a folder of their own and restores.",
    });
  }
  let prepared: Prepared;
  const restored: BackupFile[] = [];
  const notRestored: Manifest["missing"] = [];
  try {
    clearStage(stateDir);
    const stage = stageFolder(stateDir);
    for (const file of manifest.files) {
      signal.throwIfAborted();
      const fault = stageFile(from, stage, file);
      if (fault === undefined) restored.push(file);
      else if (DATABASES.has(file.path)) throw damaged(from, `its file ${file.path} ${fault}`);
      else notRestored.push({ path: file.path, reason: `it ${fault}` });
    }
    // A backup without uploads restores an empty folder: the old uploads must not stay.
    if (manifest.files.some(({ path }) => path === "service/kb.sqlite"))
      mkdirSync(join(stage, "service/uploads"), { recursive: true, mode: 0o700 });
    const first = options.check(stage).find(({ level }) => level === "damage");
    if (first !== undefined) throw damaged(from, first.message);
    prepared = options.prepare(stage);
    for (const name of readdirSync(stage, { recursive: true, withFileTypes: true }))
      if (name.isDirectory()) flush(join(name.parentPath, name.name));
    flush(stage);
  } catch (error) {
    dropStage(stateDir);
    throw writeFailure(error, stateDir);
  }
  decideExchange(stateDir, `before-restore-${options.now.toISOString().replaceAll(/[-:]|\.\d+/g, "")}`);
  const previousState = finishExchange(stateDir) ?? null;
  const bytes = restored.reduce((sum, file) => sum + file.bytes, 0);
  return { manifest, notRestored, files: restored.length, bytes, previousState, prepared };
}

function isThere(path: string): boolean {
  if (!existsSync(path)) return false;
  try {
    // A folder that is empty, or holds only the empty folder for arriving uploads, holds nothing to preserve.
    return readdirSync(path).some((name) => name !== "incoming" || readdirSync(join(path, name)).length > 0);
  } catch (error) {
    if (codeOf(error) === "ENOTDIR") return true;
    throw error;
  }
}

/** Copies a file of the backup to the stage. Returns what is wrong with it, and then leaves no copy. */
function stageFile(from: string, stage: string, { path, bytes, sha256 }: BackupFile): string | undefined {
  const to = join(stage, path);
  mkdirSync(dirname(to), { recursive: true, mode: 0o700 });
  let found;
  try {
    found = copyDurably(join(from, path), to);
  } catch (error) {
    if (codeOf(error) === "ENOENT") return "is missing";
    throw error;
  }
  if (found.bytes === bytes && found.sha256 === sha256) return undefined;
  rmSync(to);
  return found.bytes === bytes
    ? "has other bytes than were written"
    : `has ${found.bytes} bytes, expected ${bytes}`;
}

function damaged(from: string, reason: string): KbsyncError {
  return new KbsyncError(`the backup ${from} is damaged: ${reason}`, {
    code: "backup_damaged",
    subject: from,
    hint: "Nothing was changed. Restore another backup.",
  });
}

function writeFailure(error: unknown, path: string): unknown {
  const shortage = shortageAt(path, error);
  if (shortage === undefined) return error;
  const { what } = shortageWords(shortage);
  return new KbsyncError(`cannot restore into ${path}: ${what}`, {
    code: "disk_full",
    subject: path,
    hint: "Nothing was changed. A restore needs as much free space as the backup's size.",
    cause: error,
  });
}
