import { existsSync } from "node:fs";
import { pathBelow } from "../../lib/path-below.ts";
import { ledgerFile } from "../ledger/ledger.ts";
import { openSqlite } from "../ledger/database/open.ts";
import { openSources } from "../ledger/sources/sources.ts";
import type { SourceRow } from "../ledger/sources/rows.ts";
import type { Tier } from "../../wire/primitives.ts";

/** The location of a source's resources at the service. */
export interface SourceScope {
  readonly path: string;
  readonly ownerId: string;
  readonly tier: Tier;
  /** Undefined until the service has named it; until then there is nothing to search. */
  readonly collectionId: string | undefined;
}

/** Maps files to resources and back. */
export interface ResourceLookup {
  readonly sources: readonly SourceScope[];
  /** Folders that are no longer synced, whose documents are still there. */
  readonly formerSources: readonly SourceScope[];
  /** The file of a resource: its source's folder and the path below it. Undefined for a foreign resource. */
  fileOf(docId: string): { readonly source: string; readonly path: string } | undefined;
  /** The resource of the file at an absolute path; undefined if the ledger has none. */
  docOf(absolutePath: string): string | undefined;
  /** Whether the ledger has a row for an absolute path, in any state. */
  knows(absolutePath: string): boolean;
  close(): void;
}

/** Opens the ledger of a state folder for lookups; a daemon may be running. Undefined: there is no ledger yet. */
export function openResourceLookup(stateDir: string): ResourceLookup | undefined {
  const file = ledgerFile(stateDir);
  if (!existsSync(file)) return undefined;
  const db = openSqlite(file, { readonly: true });
  const sources = openSources(db);
  const rows = sources.active();
  const byDoc = db.prepare<[string], { source: string; path: string }>(
    "SELECT sources.path AS source, files.path FROM files JOIN sources ON sources.id = files.source WHERE doc_id = ?",
  );
  const byPath = db
    .prepare<[number, string], string>(
      "SELECT doc_id FROM files WHERE source = ? AND path = ? AND doc_id IS NOT NULL AND state NOT IN ('held', 'doomed')",
    )
    .pluck();
  const anyRow = db.prepare<[number, string]>("SELECT 1 FROM files WHERE source = ? AND path = ? LIMIT 1");
  /** The answer of the first source with a path that has one. */
  const inSource = <T>(absolutePath: string, find: (source: number, below: string) => T | undefined) => {
    for (const { id, path } of rows) {
      const below = pathBelow(path, absolutePath);
      const found = below === undefined || below === "" ? undefined : find(id, below);
      if (found !== undefined) return found;
    }
    return undefined;
  };
  const scopeOf = ({ path, ownerId, tier }: SourceRow): SourceScope => ({
    path,
    ownerId,
    tier,
    collectionId: sources.collectionId(tier),
  });
  return {
    sources: rows.map(scopeOf),
    formerSources: sources.removed().map(scopeOf),
    fileOf: (docId) => byDoc.get(docId),
    docOf: (absolutePath) => inSource(absolutePath, (id, below) => byPath.get(id, below)),
    knows: (absolutePath) => inSource(absolutePath, (id, below) => anyRow.get(id, below)) !== undefined,
    close: () => {
      db.close();
    },
  };
}
