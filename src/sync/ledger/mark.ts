import { readFileSync, renameSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { codeOf } from "../../lib/failure.ts";
import { rootIdentityOf } from "../disk/root-identity.ts";
import { ledgerFailure, type Sqlite } from "./open.ts";

/**
 * How far a ledger has come, noted in a small file beside it. A ledger that was put back from a backup has not come so
 * far, or is another file than the noted one. Where the mark was put back too, over the files that were there, its times
 * are not those at which it was written: a restore sets one of them. Only a disk that was set back as a whole, and a
 * folder that was moved away and back again, show none of this.
 */
export interface LedgerMark {
  /** Whether the ledger is older than what was last written here. The mark moves on with the first write after it. */
  begin(): boolean;
  /** Something was written to the ledger, and is on disk. */
  written(): void;
  /** Before the ledger is closed; what it returns is to be called when all is on disk. */
  end(): () => void;
}

/**
 * The mark moves this often while the ledger is written to. A backup that is younger than this when the process is killed
 * cannot be told from what it was made of.
 */
const MARK_MS = 60_000;

/**
 * Between writing a mark and putting it in place, on a disk that is slow; file systems that keep times of two seconds are
 * within it, too.
 */
const TIMES_MS = 10_000;

const Mark = z.object({
  count: z.int().min(0),
  file: z.number(),
  /** When it was written, by the file system's clock. Marks of older versions have none. */
  atMs: z.number().optional(),
});

/** File of the mark in a state folder. */
export function markFile(stateDir: string): string {
  return join(stateDir, "ledger.mark");
}

/** Prepares the mark of a ledger. `write` makes a change durable in it. */
export function openMark(
  db: Sqlite,
  { stateDir, ledger }: { readonly stateDir: string; readonly ledger: string },
  write: (change: () => void) => Promise<void>,
): LedgerMark {
  const beside = markFile(stateDir);
  const get = db.prepare<[], string>("SELECT value FROM meta WHERE name = 'mark'").pluck();
  const set = db.prepare(
    "INSERT INTO meta VALUES ('mark', ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
  );
  let count = 0;
  let begun = false;
  let changed = false;
  let movedMs = Number.NEGATIVE_INFINITY;

  /** After the ledger, never before it: a crash in between leaves a mark that is behind, which says nothing. */
  const report = (): void => {
    writeMark(beside, { count, file: whichFile(ledger) });
  };

  return {
    begin: () => {
      const known = Number(get.get() ?? 0);
      const found = readMark(beside);
      // A ledger that has not counted is a new one, or one from before there were marks; the first count may have no mark.
      const isOlder =
        found === undefined
          ? known > 1
          : known > 0 &&
            (found.count > known || found.file !== whichFile(ledger) || wasPutBack(beside, found.atMs));
      count = Math.max(known, found?.count ?? 0);
      begun = true;
      return isOlder;
    },
    written: () => {
      if (!begun) return;
      changed = true;
      if (performance.now() - movedMs < MARK_MS) return;
      movedMs = performance.now();
      count += 1;
      const next = String(count);
      // What fails here is told by whoever else writes: the ledger's own failure, or a disk that is full. The mark is
      // behind then, and moves on with a later write.
      write(() => set.run(next))
        .then(report)
        .catch(() => undefined);
    },
    end: () => {
      if (!begun || !changed) return () => undefined;
      count += 1;
      set.run(String(count));
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

/** Writes a mark whole. Its time of change, which nobody can set, and its other time are near the one that it notes. */
export function writeMark(file: string, mark: { readonly count: number; readonly file: number }): void {
  const next = `${file}.new`;
  writeFileSync(next, "", { mode: 0o600 });
  // Another machine's, where the folder lies on one: its clock is then compared with itself.
  const atMs = statSync(next).ctimeMs;
  writeFileSync(next, JSON.stringify({ ...mark, atMs }));
  utimesSync(next, atMs / 1000, atMs / 1000);
  renameSync(next, file);
}

/** Whether a mark was written by something else, such as a restore. */
function wasPutBack(file: string, atMs: number | undefined): boolean {
  if (atMs === undefined) return false;
  const { mtimeMs, ctimeMs } = statSync(file);
  return Math.abs(mtimeMs - atMs) > TIMES_MS || Math.abs(ctimeMs - atMs) > TIMES_MS;
}

/** A mark that cannot be understood is none. */
function readMark(file: string): z.infer<typeof Mark> | undefined {
  try {
    return Mark.parse(JSON.parse(readFileSync(file, "utf8")));
  } catch (error) {
    const code = codeOf(error);
    if (code !== undefined && code !== "ENOENT") throw ledgerFailure(error, file);
    return undefined;
  }
}

/** Tells a file from another one in its place: a copy that was put there has another birth. */
function whichFile(file: string): number {
  return rootIdentityOf(statSync(file)).ino;
}
