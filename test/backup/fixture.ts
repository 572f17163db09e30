import Database from "better-sqlite3";
import { createHash } from "node:crypto";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { makeBackup, type BackupOptions, type BackupPart, type BackupReport } from "../../src/backup/make.ts";
import { restoreBackup, type RestoreOptions, type RestoreReport } from "../../src/backup/restore.ts";

/** A small state folder: two databases, and files that rows of one of them name. */
export interface BackupGround {
  readonly base: string;
  readonly stateDir: string;
  /** Writes a database that says `word`, and names these files. */
  fill(word: string, uploads?: readonly string[]): void;
  /** What the state folder says. */
  words(): {
    readonly ledger: string | undefined;
    readonly store: string | undefined;
    readonly uploads: string[];
  };
  parts(): readonly BackupPart[];
  backup(to: string, more?: Partial<BackupOptions>): Promise<BackupReport>;
  restore(from: string, more?: Partial<RestoreOptions<void>>): RestoreReport<void>;
  end(): void;
}

export function sha256(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

export function openBackupGround(): BackupGround {
  const base = mkdtempSync(join(tmpdir(), "kbsync-backup-"));
  const stateDir = join(base, "state");
  const ledger = join(stateDir, "ledger.db");
  const store = join(stateDir, "service", "kb.sqlite");
  const uploads = join(stateDir, "service", "uploads");
  const named = (copy: string): { name: string; sha256: string }[] => {
    const db = new Database(copy, { readonly: true });
    try {
      return db.prepare<[], { name: string; sha256: string }>("SELECT name, sha256 FROM file").all();
    } finally {
      db.close();
    }
  };
  const parts = (): BackupPart[] => [
    { database: ledger, folders: [], files: () => [], check: () => [] },
    { database: store, folders: [uploads, join(uploads, "incoming")], files: named, check: () => [] },
  ];
  return {
    base,
    stateDir,
    fill: (word, names = []) => {
      mkdirSync(join(uploads, "incoming"), { recursive: true });
      for (const name of names) writeFileSync(join(uploads, name), `bytes of ${name}`);
      for (const path of [ledger, store]) {
        const db = new Database(path);
        db.pragma("journal_mode = WAL");
        db.exec(`CREATE TABLE IF NOT EXISTS word (word TEXT); DELETE FROM word;
          CREATE TABLE IF NOT EXISTS file (name TEXT, sha256 TEXT); DELETE FROM file;`);
        db.prepare("INSERT INTO word VALUES (?)").run(word);
        for (const name of names)
          db.prepare("INSERT INTO file VALUES (?, ?)").run(name, sha256(`bytes of ${name}`));
        db.close();
      }
    },
    words: () => ({
      ledger: wordOf(ledger),
      store: wordOf(store),
      uploads: existsSync(uploads) ? readdirSync(uploads).filter((name) => name !== "incoming") : [],
    }),
    parts,
    backup: (to, more = {}) =>
      makeBackup({
        stateDir,
        parts: parts(),
        target: to,
        version: "0.0.0-test",
        now: new Date("2026-01-02T03:04:05.678Z"),
        signal: new AbortController().signal,
        ...more,
      }),
    restore: (from, more = {}) =>
      restoreBackup({
        from,
        stateDir,
        force: false,
        now: new Date("2026-01-03T03:04:05.678Z"),
        signal: new AbortController().signal,
        check: () => [],
        prepare: () => undefined,
        ...more,
      }),
    end: () => rmSync(base, { recursive: true }),
  };
}

function wordOf(path: string): string | undefined {
  if (!existsSync(path)) return undefined;
  const db = new Database(path, { fileMustExist: true });
  try {
    return db.prepare<[], string>("SELECT word FROM word").pluck().get();
  } finally {
    db.close();
  }
}

/** All files below a folder with their contents, to see that nothing changed. */
export function contentsOf(folder: string): Record<string, string> {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) =>
    entry.isFile(),
  );
  return Object.fromEntries(
    files.map(({ parentPath, name }) => {
      const path = join(parentPath, name);
      return [path.slice(dirname(folder).length), sha256(readFileSync(path, "latin1"))];
    }),
  );
}
