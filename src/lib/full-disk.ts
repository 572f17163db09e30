import { statfsSync } from "node:fs";
import { dirname } from "node:path";
import { codeOf } from "./failure.ts";

/** What a file system has run out of. */
export type Shortage = "space" | "inodes";

/** Failures that say so themselves. */
const NO_SPACE = new Set(["ENOSPC", "EDQUOT", "SQLITE_FULL"]);
/** Failures that a full disk is one cause of: a file that cannot be made or made longer, as SQLite puts it. */
const PERHAPS_NO_SPACE = /^SQLITE_(?:CANTOPEN|IOERR_(?:SHMSIZE|SHMMAP|SHMOPEN|WRITE))/;

/** Whether a failure says of itself that a disk is full: the system's, SQLite's, or ours that tell of one. */
export function saysFull(error: unknown): boolean {
  const code = codeOf(error) ?? "";
  return NO_SPACE.has(code) || code === "disk_full";
}

/** What is missing where something could not be written at `path`; undefined when that is not why it failed. */
export function shortageAt(path: string, error: unknown): Shortage | undefined {
  const code = codeOf(error) ?? "";
  if (!NO_SPACE.has(code) && !PERHAPS_NO_SPACE.test(code)) return undefined;
  try {
    // Only a file system that counts its inodes can run out of them.
    const { bavail, files, ffree } = statfsSync(dirname(path));
    if (files > 0 && ffree === 0) return "inodes";
    if (bavail === 0) return "space";
  } catch {
    // The folder itself is gone or cannot be asked: what failed is said as it came.
  }
  return NO_SPACE.has(code) ? "space" : undefined;
}

/** The shortage in words, and what a person can do about it. */
export function shortageWords(shortage: Shortage): { readonly what: string; readonly hint: string } {
  return shortage === "space"
    ? { what: "no space is left on its disk", hint: "Free some space and start again: nothing is lost." }
    : {
        what: "its disk takes no more files (no inodes are left)",
        hint: "Remove some files from that disk and start again: nothing is lost.",
      };
}
