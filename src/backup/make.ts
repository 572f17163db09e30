import { chmodSync, existsSync, mkdirSync, readdirSync, renameSync, rmSync, statSync } from "node:fs";
import { basename, dirname, join, relative } from "node:path";
import { flush, writeDurably } from "../lib/durable-file.ts";
import { codeOf, KbsyncError } from "../lib/failure.ts";
import type { Finding } from "../lib/finding.ts";
import { shortageAt, shortageWords } from "../lib/full-disk.ts";
import { isAlive } from "../lib/process-alive.ts";
import { copyDurably, digestOf, type Digest } from "./durable.ts";
import { BACKUP_FORMAT, type BackupFile, MANIFEST_NAME, type Manifest } from "./manifest.ts";
import Database from "better-sqlite3";

/** A database of the state folder, and the files that its rows refer to. */
export interface BackupPart {
  readonly database: string;
  /** Folders to search for the files, in this order. */
  readonly folders: readonly string[];
  /** Returns the files that a copy of the database refers to. */
  files(copy: string): readonly NamedFile[];
  /** Checks a copy. Damage prevents the backup, so that it cannot replace a sound one. */
  check(copy: string): readonly Finding[];
}

/** A file that a row refers to. */
export interface NamedFile {
  readonly name: string;
  readonly sha256: string;
}

/** Options of a backup. */
export interface BackupOptions {
  readonly stateDir: string;
  /**
   * Copied in this order. The ledger precedes the store, so that the store's copy holds all that the ledger's copy has
   * acknowledged, unless it was deleted meanwhile.
   */
  readonly parts: readonly BackupPart[];
  /** Path of the backup. An existing folder gets a new folder inside, named by the time. */
  readonly target: string;
  readonly version: string;
  readonly now: Date;
  readonly signal: AbortSignal;
}

/** Result of a backup. */
export interface BackupReport {
  readonly path: string;
  readonly files: number;
  readonly bytes: number;
  readonly missing: Manifest["missing"];
}

/** Suffix of an unfinished backup, with the pid of its process. */
const PARTIAL = /\.partial-(\d+)$/;

/**
 * Backs up a state folder while it is in use. The backup gets its name once it is complete and flushed. Throws
 * `backup_exists`, `backup_nothing`, `backup_damaged` and `disk_full`.
 */
export async function makeBackup(options: BackupOptions): Promise<BackupReport> {
  const { stateDir, signal } = options;
  const target = targetOf(options);
  const parts = options.parts.filter(({ database }) => existsSync(database));
  if (parts.length === 0) {
    throw new KbsyncError(`there is nothing to back up in the state folder ${stateDir}`, {
      code: "backup_nothing",
      subject: stateDir,
      hint: "--state-dir or --config names another state folder.",
    });
  }
  removeUnfinished(dirname(target));
  const partial = `${target}.partial-${process.pid}`;
  try {
    mkdirSync(partial, { mode: 0o700 });
    const files: BackupFile[] = [];
    const missing: { path: string; reason: string }[] = [];
    for (const part of parts) {
      const path = relative(stateDir, part.database);
      const copy = join(partial, path);
      mkdirSync(dirname(copy), { recursive: true, mode: 0o700 });
      files.push({ path, ...(await snapshotDatabase(part.database, copy)) });
      chmodSync(copy, 0o600);
      refuseDamaged(part, copy);
      for (const named of part.files(copy)) {
        signal.throwIfAborted();
        const taken = takeFile(part, named, stateDir, partial);
        if ("reason" in taken) missing.push(taken);
        else files.push(taken);
      }
    }
    const manifest: Manifest = {
      format: BACKUP_FORMAT,
      kbsync: options.version,
      madeAt: options.now.toISOString(),
      stateDir,
      files,
      missing,
    };
    writeDurably(join(partial, MANIFEST_NAME), `${JSON.stringify(manifest, undefined, 2)}\n`);
    for (const folder of foldersOf(partial)) flush(folder);
    renameSync(partial, target);
    flush(dirname(target));
    return {
      path: target,
      files: files.length,
      bytes: files.reduce((sum, file) => sum + file.bytes, 0),
      missing,
    };
  } catch (error) {
    rmSync(partial, { recursive: true, force: true });
    throw writeFailure(error, target);
  }
}

function targetOf({ target, now }: BackupOptions): string {
  const found = statSync(target, { throwIfNoEntry: false });
  if (found?.isDirectory() === true && !existsSync(join(target, MANIFEST_NAME))) {
    const time = now.toISOString().replaceAll(/[-:]|\.\d+/g, "");
    return targetOf({ target: join(target, `kbsync-${time}`), now } as BackupOptions);
  }
  if (found === undefined) return target;
  throw new KbsyncError(`there is something at ${target} already`, {
    code: "backup_exists",
    subject: target,
    hint: "Name another path, or a folder in which each backup gets a folder of its own.",
  });
}

function refuseDamaged(part: BackupPart, copy: string): void {
  const first = part.check(copy).find(({ level }) => level === "damage");
  if (first === undefined) return;
  throw new KbsyncError(`no backup is made of what is damaged: ${first.message}`, {
    code: "backup_damaged",
    subject: part.database,
    hint: first.remedy,
  });
}

/** Copies a file into the backup, or returns why it is missing. */
function takeFile(
  { folders }: BackupPart,
  { name, sha256 }: NamedFile,
  stateDir: string,
  partial: string,
): BackupFile | Manifest["missing"][number] {
  // The final folder, even if a crash left the file in another one.
  const path = relative(stateDir, join(folders[0] ?? "", name));
  for (const folder of folders) {
    try {
      const digest = copyDurably(join(folder, name), join(partial, path));
      if (digest.sha256 === sha256) return { path, ...digest };
      rmSync(join(partial, path));
      return { path, reason: "it has other bytes than were received" };
    } catch (error) {
      if (codeOf(error) !== "ENOENT") throw error;
    }
  }
  return { path, reason: "it is not there" };
}

/** Removes unfinished backups of dead processes. */
function removeUnfinished(parent: string): void {
  if (!existsSync(parent)) mkdirSync(parent, { recursive: true, mode: 0o700 });
  for (const name of readdirSync(parent)) {
    const pid = PARTIAL.exec(name)?.[1];
    if (pid !== undefined && !isAlive(Number(pid)))
      rmSync(join(parent, basename(name)), { recursive: true, force: true });
  }
}

function foldersOf(folder: string): string[] {
  const below = readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map((entry) => join(entry.parentPath, entry.name));
  return [...below, folder];
}

function writeFailure(error: unknown, path: string): unknown {
  const shortage = shortageAt(path, error);
  if (shortage === undefined) return error;
  const { what } = shortageWords(shortage);
  return new KbsyncError(`cannot write ${path}: ${what}`, {
    code: "disk_full",
    subject: path,
    hint: "The attempt was removed. Free some space, or name another disk.",
    cause: error,
  });
}

/** Copies all pages in one step: a write between steps restarts the copy, which might then never finish. */
const ALL_PAGES = 0x7fffffff;

/**
 * Copies a snapshot of a SQLite database in use into a self-contained file without a log
 * (https://sqlite.org/backup.html). Does not block writers.
 */
async function snapshotDatabase(from: string, to: string): Promise<Digest> {
  const source = new Database(from, { readonly: true, fileMustExist: true, timeout: 5000 });
  try {
    await source.backup(to, { progress: () => ALL_PAGES });
  } finally {
    source.close();
  }
  const copy = new Database(to, { fileMustExist: true });
  try {
    copy.pragma("journal_mode = DELETE");
  } finally {
    copy.close();
  }
  flush(to);
  return digestOf(to);
}
