import Database from "better-sqlite3";
import { flush } from "../lib/durable-file.ts";
import { digestOf, type Digest } from "./durable.ts";

/** Pages of a copy's one step: all. In several steps every write in between would begin it anew, and it might never end. */
const ALL_PAGES = 0x7fffffff;

/**
 * Copies a SQLite database as it is at one moment, while others read and write it, into a file that stands by itself,
 * without a log beside it (https://sqlite.org/backup.html). Who writes meanwhile waits for nothing.
 */
export async function snapshotDatabase(from: string, to: string): Promise<Digest> {
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
