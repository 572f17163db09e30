import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import Database from "better-sqlite3";
import { codeOf, KbsyncError, messageOf } from "./failure.ts";
import { isAlive } from "./process-alive.ts";
import { shortageAt, shortageWords } from "./full-disk.ts";
import { makePrivate } from "./private-path.ts";

/** The right to be the only process that does something in a folder. */
export interface Lock {
  release(): void;
}

/**
 * How often the lock is asked for before it counts as another's, and the longest wait in between, in milliseconds. Some
 * that come at the same instant can each find it half taken by another; after waits of random length one of them gets
 * it. Counted, not timed: on a machine that stalls, time passes without anybody asking. A holder never lets go of it.
 */
const TRIES = 20;
const TRY_WAIT_MS = 25;
/** How long the holder may take to write down its pid, and how often is looked for it. */
const PID_MS = 3000;
const PID_LOOK_MS = 10;

/**
 * Takes the lock `name` of a folder for this process. Throws `state_locked`, naming the other's pid, or
 * `state_unusable` or `disk_full`. The lock is SQLite's own on a file of its own: the system drops it when the process ends in
 * whatever way, and a pid that was used again means nothing. The pid stands in another file, for closing any handle
 * of a locked one would drop the lock (https://sqlite.org/src/artifact/os_unix.c, "posix advisory locks").
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

/** A connection that nothing refers to is collected and closed, and the lock with it. */
const HELD = new Set<Database.Database>();

/** The connection whose open transaction is the lock. */
function take(folder: string, file: string, pidFile: string): Database.Database {
  for (let tries = 1; ; tries += 1) {
    let db: Database.Database | undefined;
    try {
      // No timeout: one that waits for the lock holds a part of it, and so others off.
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
 * `state_unusable`: something in a state folder cannot be made or written; `disk_full` where that is why. `path` is the
 * folder, or the file in it.
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
    { code: "state_locked", subject: folder, hint: "stop it first, or use another stateDir", cause },
  );
}

/**
 * Pid of the process that holds the lock. Between its taking the lock and its writing the pid the file is missing, or
 * names one that was killed: that is waited out, and then nobody is named rather than the wrong one.
 */
function holderOf(pidFile: string): number | undefined {
  for (let waitedMs = 0; ; waitedMs += PID_LOOK_MS) {
    const pid = readPid(pidFile);
    if (pid !== undefined && isAlive(pid)) return pid;
    if (waitedMs >= PID_MS) return undefined;
    wait(PID_LOOK_MS);
  }
}

/** Holds this thread up: nothing may happen here before the lock is taken. */
function wait(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

function readPid(file: string): number | undefined {
  try {
    const text = readFileSync(file, "utf8").trim();
    return /^\d+$/.test(text) ? Number(text) : undefined;
  } catch {
    return undefined; // The other one is starting or ending; the message does without its pid.
  }
}
