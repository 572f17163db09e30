import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { WatchedSource } from "../../../src/sync/scan/rules/rules.ts";

/** Creates a temporary folder with these files. A path that ends in a slash is an empty folder. */
export function makeTree(files: Readonly<Record<string, string | Buffer>>): string {
  const root = mkdtempSync(join(tmpdir(), "kbsync-tree-"));
  addFiles(root, files);
  return root;
}

/** Writes files below a folder, and creates their folders. */
export function addFiles(root: string, files: Readonly<Record<string, string | Buffer>>): void {
  for (const [path, text] of Object.entries(files)) {
    const absolute = join(root, path);
    if (path.endsWith("/")) mkdirSync(absolute, { recursive: true });
    else {
      mkdirSync(dirname(absolute), { recursive: true });
      writeFileSync(absolute, text);
    }
  }
}

export function removeTree(root: string): void {
  rmSync(root, { recursive: true, force: true });
}

export type SourceFields = Partial<Omit<WatchedSource, "path" | "absolutePath">>;

/** A source for a folder, with the configuration's defaults. */
export function sourceAt(root: string, fields: SourceFields = {}): WatchedSource {
  return {
    path: root,
    absolutePath: root,
    ownerId: "owner",
    collection: "fastest",
    settings: { strategy: "recursive", chunkSize: 1000, chunkOverlap: 100 },
    include: [],
    exclude: [],
    deletes: "mirror",
    allowSecrets: [],
    rules: [],
    maxFileBytes: 1_000_000,
    ...fields,
  };
}
