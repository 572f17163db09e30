import { statfsSync } from "node:fs";
import { dirname } from "node:path";
import { codeOf } from "./failure.ts";

/** The resource that a file system lacks. */
export type Shortage = "space" | "inodes";

/** Error codes that mean a full disk. */
const NO_SPACE = new Set(["ENOSPC", "EDQUOT", "SQLITE_FULL"]);
/** SQLite codes for which a full disk is one of several causes: a file cannot be created or extended. */
const POSSIBLY_NO_SPACE = /^SQLITE_(?:CANTOPEN|IOERR_(?:SHMSIZE|SHMMAP|SHMOPEN|WRITE))/;

/** Whether an error of the system, of SQLite or of kbsync reports a full disk by its code. */
export function saysFull(error: unknown): boolean {
  const code = codeOf(error) ?? "";
  return NO_SPACE.has(code) || code === "disk_full";
}

/** Returns what the disk lacked when writing at `path` failed, or undefined if the failure has another cause. */
export function shortageAt(path: string, error: unknown): Shortage | undefined {
  const code = codeOf(error) ?? "";
  if (!NO_SPACE.has(code) && !POSSIBLY_NO_SPACE.test(code)) return undefined;
  return shortageIn(dirname(path)) ?? (NO_SPACE.has(code) ? "space" : undefined);
}

/** Returns what the disk of a folder lacks now to take so much; undefined: nothing, or the folder is gone or unreadable. */
export function shortageIn(folder: string, bytes = 1): Shortage | undefined {
  try {
    // Only a file system that counts its inodes can run out of them.
    const { bavail, bsize, files, ffree } = statfsSync(folder);
    if (files > 0 && ffree === 0) return "inodes";
    return bavail * bsize < bytes ? "space" : undefined;
  } catch {
    return undefined;
  }
}

/** Describes a shortage, with a hint for people. */
export function shortageWords(shortage: Shortage): { readonly what: string; readonly hint: string } {
  return shortage === "space"
    ? { what: "no space is left on its disk", hint: "Free some space and start again: nothing is lost." }
    : {
        what: "its disk takes no more files (no inodes are left)",
        hint: "Remove some files from that disk and start again: nothing is lost.",
      };
}
