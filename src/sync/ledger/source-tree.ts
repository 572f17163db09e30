import type { SettledIgnore } from "../rules/ignore-settling.ts";
import type { Sqlite } from "./open.ts";

/** What the ledger knows of the folders of sources, beside their files. Changes are plain statements: run them inside a group commit. */
export interface SourceTree {
  /** Hashes of the ignore files in force, by their folder. */
  ignoreFiles(source: number): ReadonlyMap<string, string>;
  setIgnoreFile(source: number, file: SettledIgnore): void;
}

/** Prepares the statements. */
export function openSourceTree(db: Sqlite): SourceTree {
  const ignoreFiles = db.prepare<[number], { folder: string; hash: string }>(
    "SELECT folder, hash FROM ignore_files WHERE source = ?",
  );
  const setIgnoreFile = db.prepare(
    `INSERT INTO ignore_files (source, folder, hash) VALUES (?, ?, ?)
     ON CONFLICT (source, folder) DO UPDATE SET hash = excluded.hash`,
  );
  const removeIgnoreFile = db.prepare("DELETE FROM ignore_files WHERE source = ? AND folder = ?");
  return {
    ignoreFiles: (source) => new Map(ignoreFiles.all(source).map(({ folder, hash }) => [folder, hash])),
    setIgnoreFile: (source, { folder, hash }) => {
      if (hash === undefined) removeIgnoreFile.run(source, folder);
      else setIgnoreFile.run(source, folder, hash);
    },
  };
}
