import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import Database from "better-sqlite3";
import { codeOf, KbsyncError, messageOf } from "./failure.ts";
import { isAlive } from "./process-alive.ts";
import { shortageAt, shortageWords } from "./full-disk.ts";
import { makePrivate } from "./private-path.ts";

/** An exclusive lock on a folder. */
export interface Lock {
  release(): void;
}

/**
 * Attempts before the lock counts as held by another process, and the longest random wait between two, in milliseconds.
 * Processes that start at the same instant can each find the lock half taken; after random waits one of them gets it. The
 * bound counts attempts because a stalled machine lets time pass without any.
 */
const TRIES = 20;
const TRY_WAIT_MS = 25;
/** Longest wait for the holder to write its pid, and the poll interval. */
const PID_MS = 3000;
const PID_POLL_MS = 10;

/**
 * Takes the lock `name` of a folder for this process. Throws `state_locked` with the holder's pid, `state_unusable` or
 * `disk_full`. The lock is an exclusive SQLite lock on a separate file: the kernel drops it when the process ends in any
 * way, and a reused pid means nothing. The pid is in another file, because closing any handle of a locked file drops the
 * lock (https://sqlite.org/src/artifact/os_unix.c, "posix advisory locks").
 */
export function lockFolder(folder: string, name: string): Lock {
  const pidFile = join(folder, `${name}.pid`);
  const held = take(folder, `${name}.lock`, pidFile);
  try {
    writeFileSync(pidFile, `${process.pid}\n`, { mode: 0o600 });
  } catch (error) {
    held.close();
    throw stateUnusable(folder, error);
  }
  HELD.add(held);
  return {
    release: () => {
      HELD.delete(held);
      rmSync(pidFile, { force: true });
      held.close();
    },
  };
}

/** Keeps connections referenced: garbage collection closes a connection and so drops its lock. */
const HELD = new Set<Database.Database>();

/** Returns the connection whose open transaction is the lock. */
function take(folder: string, file: string, pidFile: string): Database.Database {
  for (let tries = 1; ; tries += 1) {
    let db: Database.Database | undefined;
    try {
      // No timeout: a waiting connection holds part of the lock and so blocks others.
      makePrivate(join(folder, file));
      db = new Database(join(folder, file), { timeout: 0 });
      db.exec("BEGIN EXCLUSIVE");
      return db;
    } catch (error) {
      db?.close();
      if (codeOf(error)?.startsWith("SQLITE_BUSY") !== true) throw stateUnusable(folder, error);
      if (tries === TRIES) throw locked(folder, pidFile, error);
      wait(Math.random() * TRY_WAIT_MS);
    }
  }
}

/**
 * Returns a `state_unusable` failure for a state folder, or a file in it, that cannot be created or written; `disk_full`
 * if that is the cause.
 */
export function stateUnusable(path: string, cause: unknown): KbsyncError {
  const shortage = shortageAt(path, cause);
  if (shortage !== undefined) {
    const { what, hint } = shortageWords(shortage);
    return new KbsyncError(`the state folder cannot be used, at ${path}: ${what}`, {
      code: "disk_full",
      subject: path,
      retryable: true,
      hint,
      cause,
    });
  }
  return new KbsyncError(`the state folder cannot be used, at ${path}: ${messageOf(cause)}`, {
    code: "state_unusable",
    subject: path,
    hint: "Check that it is writable and its disk not full, or name another with --state-dir or stateDir.",
    cause,
  });
}

function locked(folder: string, pidFile: string, cause: unknown): KbsyncError {
  const pid = holderOf(pidFile);
  return new KbsyncError(
    `another kbsync${pid === undefined ? "" : ` (process ${pid})`} is using the state folder ${folder}`,
    {
      code: "state_locked",
      subject: folder,
      hint: "Stop it first, or name another folder with --state-dir.",
      cause,
    },
  );
}

/**
 * Returns the pid of the process that holds the lock. Until the holder has written its pid, the file is missing or names a
 * dead process: waits that out, then returns undefined rather than a wrong pid.
 */
function holderOf(pidFile: string): number | undefined {
  for (let waitedMs = 0; ; waitedMs += PID_POLL_MS) {
    const pid = readPid(pidFile);
    if (pid !== undefined && isAlive(pid)) return pid;
    if (waitedMs >= PID_MS) return undefined;
    wait(PID_POLL_MS);
  }
}

/** Blocks this thread: nothing may run in it before the lock is taken. */
function wait(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

/** The pid of the process that holds a lock, as it wrote it; undefined if none did. It may have ended since. */
export function lockHolder(folder: string, name: string): number | undefined {
  return readPid(join(folder, `${name}.pid`));
}

function readPid(file: string): number | undefined {
  try {
    const text = readFileSync(file, "utf8").trim();
    return /^\d+$/.test(text) ? Number(text) : undefined;
  } catch {
    return undefined; // The holder is starting or ending; the message omits its pid.
  }
}
