import { readFileSync, renameSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { codeOf } from "../../lib/failure.ts";
import { rootIdentityOf } from "../scan/disk/root-identity.ts";
import { openMeta } from "./database/meta.ts";
import { ledgerFailure, type Sqlite } from "./database/open.ts";

/**
 * Records how far a ledger has advanced, in a small file next to it. A ledger restored from a backup is behind its
 * mark, or is another file than the mark names. If the mark was restored too, over the existing files, its times differ
 * from when it was written, because a restore sets one of them. Only a disk that was reset as a whole, and a folder
 * that was moved away and back, show none of this.
 */
export type LedgerMark = ReturnType<typeof openMark>;

/**
 * The mark advances this often while the ledger is written to. If the process is killed, a backup younger than this
 * cannot be distinguished from its original.
 */
const MARK_MS = 60_000;

/**
 * Longest time between writing a mark and renaming it, on a slow disk. File systems with a resolution of two seconds
 * are within it too.
 */
const TIMES_MS = 10_000;

const Mark = z.object({
  count: z.int().min(0),
  file: z.number(),
  /** When it was written, by the file system's clock. Marks of older versions lack it. */
  atMs: z.number().optional(),
});

/** Returns the mark file of a state folder. */
export function markFile(stateDir: string): string {
  return join(stateDir, "ledger.mark");
}

/** Prepares the mark of a ledger. `write` makes a change durable in the ledger. */
export function openMark(
  db: Sqlite,
  { stateDir, ledger }: { readonly stateDir: string; readonly ledger: string },
  write: (change: () => void) => Promise<void>,
) {
  const beside = markFile(stateDir);
  const meta = openMeta(db);
  let count = 0;
  let isCounting = false;
  let changed = false;
  let movedMs = Number.NEGATIVE_INFINITY;

  /**
   * Runs after the ledger's write, never before: a crash in between leaves a mark that is behind, which proves nothing.
   */
  const report = (): void => {
    writeMark(beside, { count, file: fileIdentity(ledger) });
  };

  const written = (): void => {
    if (!isCounting) return;
    changed = true;
    if (performance.now() - movedMs < MARK_MS) return;
    movedMs = performance.now();
    count += 1;
    const next = String(count);
    // Another writer reports what fails here: the ledger's own failure, or a full disk. The mark is then behind, and
    // advances with a later write.
    write(() => meta.set("mark", next))
      .then(report)
      .catch(() => undefined);
  };

  return {
    /** Reports whether the ledger is older than what was last written here. The next write advances the mark. */
    begin: (): boolean => {
      const known = meta.number("mark") ?? 0;
      const found = readMark(beside);
      // A ledger without a count is new, or older than marks. The first count may have no mark.
      const isOlder =
        found === undefined
          ? known > 1
          : known > 0 &&
            (found.count > known || found.file !== fileIdentity(ledger) || wasPutBack(beside, found.atMs));
      count = Math.max(known, found?.count ?? 0);
      isCounting = true;
      // Nothing else may be written for a long time, and a copy made meanwhile would pass for a new ledger.
      if (known === 0) written();
      return isOlder;
    },
    /** Records that something was written to the ledger and is on disk. */
    written,
    /** Call before the ledger is closed; call the function it returns once everything is on disk. */
    end: (): (() => void) => {
      if (!isCounting || !changed) return () => undefined;
      count += 1;
      meta.set("mark", String(count));
      return () => {
        try {
          report();
        } catch {
          // As above.
        }
      };
    },
  };
}

/**
 * Writes a mark atomically. Its change time, which nobody can set, and its modification time are near the time that it
 * records.
 */
export function writeMark(file: string, mark: { readonly count: number; readonly file: number }): void {
  const next = `${file}.new`;
  writeFileSync(next, "", { mode: 0o600 });
  // The file system's clock, which may be another machine's. It is then compared with itself.
  const atMs = statSync(next).ctimeMs;
  writeFileSync(next, JSON.stringify({ ...mark, atMs }));
  utimesSync(next, atMs / 1000, atMs / 1000);
  renameSync(next, file);
}

/** Reports whether something else wrote a mark, such as a restore. */
function wasPutBack(file: string, atMs: number | undefined): boolean {
  if (atMs === undefined) return false;
  const { mtimeMs, ctimeMs } = statSync(file);
  return Math.abs(mtimeMs - atMs) > TIMES_MS || Math.abs(ctimeMs - atMs) > TIMES_MS;
}

/** Reads the mark. A mark that cannot be parsed counts as missing. */
function readMark(file: string): z.infer<typeof Mark> | undefined {
  try {
    return Mark.parse(JSON.parse(readFileSync(file, "utf8")));
  } catch (error) {
    const code = codeOf(error);
    if (code !== undefined && code !== "ENOENT") throw ledgerFailure(error, file);
    return undefined;
  }
}

/** Distinguishes a file from another one at its path: a copy put there has another time of birth. */
function fileIdentity(file: string): number {
  return rootIdentityOf(statSync(file)).ino;
}
