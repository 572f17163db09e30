import { chmodSync, closeSync, existsSync, openSync, statSync } from "node:fs";
import { codeOf } from "./failure.ts";

/** Permission bits of everyone but the owner. */
const OTHERS = 0o077;

/**
 * Makes a database file private to its owner: creates a missing file with mode 0600, and removes other users' access to an
 * existing one. SQLite gives journal, log and shared memory the mode of the database
 * (https://sqlite.org/src/artifact/os_unix.c, "findCreateFileMode"), so existing ones need the same.
 */
export function makePrivate(file: string): void {
  // Does not open an existing file: closing any handle of a database drops the process's locks on it.
  if (!existsSync(file)) closeSync(openSync(file, "a", 0o600));
  for (const part of ["", "-wal", "-shm", "-journal"]) closeToOthers(`${file}${part}`);
}

/**
 * Removes the access of everyone but the owner. Leaves a missing path and one of another user unchanged. Returns whether
 * the path is private now.
 */
export function closeToOthers(path: string): boolean {
  const mode = statSync(path, { throwIfNoEntry: false })?.mode ?? 0;
  if ((mode & OTHERS) === 0) return true;
  try {
    chmodSync(path, mode & 0o7700);
    return true;
  } catch (error) {
    // A pod's volume may belong to root and be open to the pod's group.
    if (["EPERM", "EROFS"].includes(codeOf(error) ?? "")) return false;
    throw error;
  }
}

/** Whether others than the owner have access to a path; false for a missing one. */
export function isOpenToOthers(path: string): boolean {
  return ((statSync(path, { throwIfNoEntry: false })?.mode ?? 0) & OTHERS) !== 0;
}
