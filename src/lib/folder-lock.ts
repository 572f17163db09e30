import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import Database from "better-sqlite3";
import { codeOf, KbsyncError, messageOf } from "./failure.ts";

/** The right to be the only process that does something in a folder. */
export interface Lock {
  release(): void;
}

/**
 * Takes the lock `name` of a folder for this process. Throws `state_locked`, naming the other's pid, or
 * `state_unusable`. The lock is SQLite's own on a file of its own: the system drops it when the process ends in
 * whatever way, and a pid that was used again means nothing. The pid stands in another file, for closing any handle
 * of a locked one would drop the lock (https://sqlite.org/src/artifact/os_unix.c, "posix advisory locks").
 */
export function lockFolder(folder: string, name: string): Lock {
  const pidFile = join(folder, `${name}.pid`);
  let db: Database.Database | undefined;
  try {
    db = new Database(join(folder, `${name}.lock`), { timeout: 0 });
    db.pragma("locking_mode = EXCLUSIVE");
    db.exec("BEGIN EXCLUSIVE");
  } catch (error) {
    db?.close();
    if (codeOf(error)?.startsWith("SQLITE_BUSY") === true) throw locked(folder, pidFile, error);
    throw stateUnusable(folder, error);
  }
  const held = db;
  try {
    writeFileSync(pidFile, `${process.pid}\n`, { mode: 0o600 });
  } catch (error) {
    held.close();
    throw stateUnusable(folder, error);
  }
  return {
    release: () => {
      rmSync(pidFile, { force: true });
      held.close();
    },
  };
}

/** `state_unusable`: something in a state folder cannot be made or written. `path` is the folder, or the file in it. */
export function stateUnusable(path: string, cause: unknown): KbsyncError {
  return new KbsyncError(`the state folder cannot be used, at ${path}: ${messageOf(cause)}`, {
    code: "state_unusable",
    subject: path,
    hint: "Check that it is writable and its disk not full, or name another with --state-dir or stateDir.",
    cause,
  });
}

function locked(folder: string, pidFile: string, cause: unknown): KbsyncError {
  const pid = readPid(pidFile);
  return new KbsyncError(
    `another kbsync${pid === undefined ? "" : ` (process ${pid})`} is using the state folder ${folder}`,
    { code: "state_locked", subject: folder, hint: "stop it first, or use another stateDir", cause },
  );
}

function readPid(file: string): string | undefined {
  try {
    const text = readFileSync(file, "utf8").trim();
    return /^\d+$/.test(text) ? text : undefined;
  } catch {
    return undefined; // The other one is starting or ending; the message does without its pid.
  }
}
