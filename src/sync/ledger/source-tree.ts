import type { RelativePath, RootIdentity } from "../plan/model.ts";
import type { NotedMount } from "../rules/sub-mounts.ts";
import type { SettledIgnore } from "../rules/ignore-settling.ts";
import type { Sqlite } from "./open.ts";

/** What the ledger knows of the folders of sources, beside their files. Changes are plain statements: run them inside a group commit. */
export interface SourceTree {
  /** Hashes of the ignore files in force, by their folder. */
  ignoreFiles(source: number): ReadonlyMap<string, string>;
  setIgnoreFile(source: number, file: SettledIgnore): void;
  /** What is mounted below a source's folder, by its path. */
  mounts(source: number): ReadonlyMap<string, RootIdentity>;
  setMount(source: number, mount: NotedMount): void;
  /** Whether there are files at or below a path; "" is the source's folder. */
  hasFiles(source: number, path: RelativePath): boolean;
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
  const mounts = db.prepare<[number], { path: string; dev: string; ino: string }>(
    "SELECT path, dev, ino FROM mounts WHERE source = ?",
  );
  const setMount = db.prepare(
    `INSERT INTO mounts (source, path, dev, ino) VALUES (?, ?, ?, ?)
     ON CONFLICT (source, path) DO UPDATE SET dev = excluded.dev, ino = excluded.ino`,
  );
  const removeMount = db.prepare("DELETE FROM mounts WHERE source = ? AND path = ?");
  // "0" follows "/" in the order of bytes. Two look-ups of one index each.
  const hasFiles = db
    .prepare<{ source: number; path: string }, number>(
      `SELECT EXISTS (SELECT 1 FROM files WHERE source = @source AND path = @path)
         OR EXISTS (SELECT 1 FROM files WHERE source = @source AND path >= @path || '/' AND path < @path || '0')
         OR (@path = '' AND EXISTS (SELECT 1 FROM files WHERE source = @source))`,
    )
    .pluck();
  return {
    ignoreFiles: (source) => new Map(ignoreFiles.all(source).map(({ folder, hash }) => [folder, hash])),
    setIgnoreFile: (source, { folder, hash }) => {
      if (hash === undefined) removeIgnoreFile.run(source, folder);
      else setIgnoreFile.run(source, folder, hash);
    },
    mounts: (source) =>
      new Map(mounts.all(source).map(({ path, dev, ino }) => [path, { dev: Number(dev), ino: Number(ino) }])),
    setMount: (source, { path, root }) => {
      if (root === undefined) removeMount.run(source, path);
      else setMount.run(source, path, String(root.dev), String(root.ino));
    },
    hasFiles: (source, path) => hasFiles.get({ source, path }) === 1,
  };
}
