import { KbsyncError } from "../../lib/failure.ts";
import type { RelativePath } from "../plan/model.ts";
import type { Sqlite } from "./database/open.ts";

/** A file or a folder of a source; without a path the whole source. */
export interface ErasedSubtree {
  readonly source: number;
  readonly below: RelativePath | undefined;
}

/** A saved text, by its file in the trash folder. */
interface SavedText {
  readonly id: number;
  readonly name: string;
}

/** Counts of removed rows. */
export interface ErasedRows {
  readonly files: number;
  readonly texts: number;
  readonly activities: number;
}

/** Finds and removes everything that the ledger holds of subtrees. Changes are plain statements: run them inside a group commit. */
export interface LedgerErasures {
  /** Where the files of a resource are or were, as far back as the log of activities goes. */
  subtreesOf(docId: string): ErasedSubtree[];
  /** Sources of an owner, with their folders, whether configured or not. */
  sourcesOf(ownerId: string): { readonly id: number; readonly path: string; readonly active: boolean }[];
  /** Files at a subtree that the ledger knows. */
  paths(subtree: ErasedSubtree): RelativePath[];
  /**
   * Resources that files at a subtree have or had. Leaves out those of files that were moved elsewhere. Known as far back as the log of
   * activities and the trash go.
   */
  resources(subtree: ErasedSubtree): string[];
  /** Reports whether a create at a subtree has no answer yet, so that it may have made a resource of unknown id. */
  hasOpenCreates(subtree: ErasedSubtree): boolean;
  /** Saved texts at a subtree, or of resources. */
  texts(subtree: ErasedSubtree | undefined, docIds: readonly string[]): SavedText[];
  /** Removes the rows of a subtree and of resources, which become tombstones. */
  remove(subtree: ErasedSubtree | undefined, docIds: readonly string[]): ErasedRows;
  /** Removes a source that left the configuration and has nothing left. */
  removeSource(id: number): void;
  /** Rewrites the file without its free space, and empties its log. Throws `erase_busy`. */
  scrub(): void;
}

/** Prepares the statements. */
export function openErasures(db: Sqlite): LedgerErasures {
  const subtrees = db.prepare<{ docId: string }, { source: number; below: string }>(`
    SELECT source, path AS below FROM files WHERE doc_id = @docId
    UNION SELECT source, path FROM trash WHERE doc_id = @docId
    UNION SELECT source, path FROM intents WHERE doc_id = @docId`);
  const sources = db.prepare<[string], { id: number; path: string; active: number }>(
    "SELECT id, path, active FROM sources WHERE owner_id = ?",
  );
  const paths = db
    .prepare<Selected, string>(
      `SELECT path FROM files WHERE ${at("path")} UNION SELECT path FROM trash WHERE ${at("path")}`,
    )
    .pluck();
  const resources = db
    .prepare<Selected, string>(`
    SELECT DISTINCT doc_id FROM (
      SELECT doc_id FROM files WHERE ${at("path")}
      UNION ALL SELECT doc_id FROM intents WHERE ${at("path")}
      UNION ALL SELECT doc_id FROM trash WHERE ${at("path")}
      UNION ALL SELECT doc_id FROM activity WHERE ${at("path")} OR ${at("from_path")}
    ) AS known WHERE doc_id IS NOT NULL AND NOT EXISTS (
      SELECT 1 FROM files WHERE files.doc_id = known.doc_id AND NOT (${at("files.path", "files.source")}))`)
    .pluck();
  const openCreates = db.prepare<Selected>(
    `SELECT 1 FROM intents WHERE ${at("path")} AND (kind = 'create' OR kind = 'doubt' AND doc_id IS NULL) LIMIT 1`,
  );
  const texts = db.prepare<Selected, SavedText>(`SELECT id, name FROM trash WHERE ${at("path")} OR ${IS_OF}`);
  const removals = {
    files: [`DELETE FROM files WHERE ${at("path")} OR ${IS_OF}`],
    texts: [`DELETE FROM trash WHERE ${at("path")} OR ${IS_OF}`],
    activities: [`DELETE FROM activity WHERE ${at("path")} OR ${at("from_path")} OR ${IS_OF}`],
    others: [
      `DELETE FROM intents WHERE ${at("path")} OR ${IS_OF}`,
      `DELETE FROM ignore_files WHERE ${at("folder")}`,
      `DELETE FROM mounts WHERE ${at("path")}`,
      `INSERT OR IGNORE INTO tombstones (doc_id) SELECT value FROM json_each(@docIds)`,
    ],
  };
  const prepared = Object.entries(removals).map(
    ([name, list]) => [name, list.map((sql) => db.prepare<Selected>(sql))] as const,
  );
  const ofSource = ["deletes_lately", "losses", "adopted", "paused", "ignore_files", "mounts"].map((table) =>
    db.prepare(`DELETE FROM ${table} WHERE source = ?`),
  );
  const removeSource = db.prepare("DELETE FROM sources WHERE id = ? AND active = 0");
  const removeShapes = db.prepare(`
    DELETE FROM shapes WHERE id NOT IN (SELECT shape FROM files WHERE shape IS NOT NULL)
      AND id NOT IN (SELECT shape FROM intents WHERE shape IS NOT NULL)`);

  return {
    subtreesOf: (docId) => subtrees.all({ docId }),
    sourcesOf: (ownerId) =>
      sources.all(ownerId).map(({ id, path, active }) => ({ id, path, active: active === 1 })),
    paths: (subtree) => paths.all(selected(subtree)),
    resources: (subtree) => resources.all(selected(subtree)),
    hasOpenCreates: (subtree) => openCreates.get(selected(subtree)) !== undefined,
    texts: (subtree, docIds) => texts.all(selected(subtree, docIds)),
    remove: (subtree, docIds) => {
      const selection = selected(subtree, docIds);
      const counts = { files: 0, texts: 0, activities: 0, others: 0 };
      for (const [name, list] of prepared) {
        for (const statement of list) counts[name as keyof typeof counts] += statement.run(selection).changes; // its keys
      }
      const { others: _, ...rows } = counts;
      return rows;
    },
    removeSource: (id) => {
      for (const statement of ofSource) statement.run(id);
      removeSource.run(id);
      // They hold the name of the owner.
      removeShapes.run();
    },
    scrub: () => {
      db.exec("VACUUM");
      const [{ busy }] = db.pragma("wal_checkpoint(TRUNCATE)") as [{ busy: number }]; // documented by SQLite
      if (busy === 0) return;
      throw new KbsyncError("another process is reading the ledger, so its log cannot be emptied", {
        code: "erase_busy",
        retryable: true,
        hint: "Run the same command again: it erases what is left.",
      });
    },
  };
}

/** Parameters of the statements. */
interface Selected {
  /** Null: no subtree. */
  readonly source: number | null;
  /** Null: the whole source. */
  readonly below: RelativePath | null;
  /** As JSON. */
  readonly docIds: string;
}

function selected(subtree: ErasedSubtree | undefined, docIds: readonly string[] = []): Selected {
  return { source: subtree?.source ?? null, below: subtree?.below ?? null, docIds: JSON.stringify(docIds) };
}

const IS_OF = "doc_id IN (SELECT value FROM json_each(@docIds))";

/** True of a row at or below the subtree. "0" follows "/" in byte order. */
function at(path: string, source = "source"): string {
  return `(${source} = @source AND (@below IS NULL OR ${path} = @below OR (${path} >= @below || '/' AND ${path} < @below || '0')))`;
}
