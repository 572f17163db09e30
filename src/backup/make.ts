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

/** A database of the state folder, and the files that its rows name. */
export interface BackupPart {
  readonly database: string;
  /** Where the named files lie, as far as there are any: the first place that has one. */
  readonly places: readonly string[];
  /** Names of the files that a copy of the database knows, with the hash of each. */
  files(copy: string): readonly NamedFile[];
  /** What is wrong with a copy: then no backup is made, lest a sound one be thrown away for it. */
  check(copy: string): readonly Finding[];
}

/** A file that a row names. */
export interface NamedFile {
  readonly name: string;
  readonly sha256: string;
}

/** What a backup is made of. */
export interface BackupOptions {
  readonly stateDir: string;
  /**
   * In this order: what a later part holds was there when the earlier one was copied, or came after. So the ledger comes
   * before the store: what it has acknowledged is in the store's copy, unless it was deleted meanwhile.
   */
  readonly parts: readonly BackupPart[];
  /** Where the backup is to be. A folder that exists gets it as a new folder inside, named by its time. */
  readonly target: string;
  readonly version: string;
  readonly now: Date;
  readonly signal: AbortSignal;
}

/** A backup that was made. */
export interface BackupReport {
  readonly path: string;
  readonly files: number;
  readonly bytes: number;
  readonly missing: Manifest["missing"];
}

/** Names of unfinished backups end so, with the process that makes them. */
const PARTIAL = /\.partial-(\d+)$/;

/**
 * Copies everything that makes a state folder what it is, while it is used. The backup has its name once it is whole and
 * flushed, and not before. Throws `backup_exists`, `backup_nothing`, `backup_damaged` and `disk_full`.
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
  removeLeftOver(dirname(target));
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
    hint: "Name another place, or a folder in which each backup gets a folder of its own.",
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

/** A named file in the backup, or why it is not there. */
function takeFile(
  { places }: BackupPart,
  { name, sha256 }: NamedFile,
  stateDir: string,
  partial: string,
): BackupFile | Manifest["missing"][number] {
  // Where it is kept in the end, wherever a crash left it for now.
  const path = relative(stateDir, join(places[0] ?? "", name));
  for (const place of places) {
    try {
      const digest = copyDurably(join(place, name), join(partial, path));
      if (digest.sha256 === sha256) return { path, ...digest };
      rmSync(join(partial, path));
      return { path, reason: "it has other bytes than were received" };
    } catch (error) {
      if (codeOf(error) !== "ENOENT") throw error;
    }
  }
  return { path, reason: "it is not there" };
}

/** Unfinished backups of processes that are gone. */
function removeLeftOver(parent: string): void {
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
    hint: "Nothing is left of the attempt. Free some space, or name another disk.",
    cause: error,
  });
}

/** Pages of a copy's one step: all. In several steps every write in between would begin it anew, and it might never end. */
const ALL_PAGES = 0x7fffffff;

/**
 * Copies a SQLite database as it is at one moment, while others read and write it, into a file that stands by itself,
 * without a log beside it (https://sqlite.org/backup.html). Who writes meanwhile waits for nothing.
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
