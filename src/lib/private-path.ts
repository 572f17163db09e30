import { chmodSync, closeSync, existsSync, openSync, statSync } from "node:fs";
import { codeOf } from "./failure.ts";

/** Permission bits of everyone but the owner. */
const OTHERS = 0o077;

/**
 * Makes a database file readable by its owner alone: creates it empty with mode 0600 where there is none, and takes the
 * rights of others away where there is one. SQLite gives its journal, log and shared memory the mode of the database
 * (https://sqlite.org/src/artifact/os_unix.c, "findCreateFileMode"), so those of an older version are closed too.
 */
export function makePrivate(file: string): void {
  // Not opened where it is there: closing any handle of a database drops the process's locks on it.
  if (!existsSync(file)) closeSync(openSync(file, "a", 0o600));
  for (const part of ["", "-wal", "-shm", "-journal"]) closeToOthers(`${file}${part}`);
}

/**
 * Takes the rights of everyone but the owner away. A path that is not there, or that belongs to another user, stays as
 * it is; returns whether nobody else has rights to it now.
 */
export function closeToOthers(path: string): boolean {
  const mode = statSync(path, { throwIfNoEntry: false })?.mode ?? 0;
  if ((mode & OTHERS) === 0) return true;
  try {
    chmodSync(path, mode & 0o7700);
    return true;
  } catch (error) {
    // A volume may belong to root and be open to the group of its pod.
    if (["EPERM", "EROFS"].includes(codeOf(error) ?? "")) return false;
    throw error;
  }
}

/** Whether somebody other than the owner may read or change a path; false for one that is not there. */
export function isOpenToOthers(path: string): boolean {
  return ((statSync(path, { throwIfNoEntry: false })?.mode ?? 0) & OTHERS) !== 0;
}
