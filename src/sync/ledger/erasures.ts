import { KbsyncError } from "../../lib/failure.ts";
import type { RelativePath } from "../plan/model.ts";
import type { Sqlite } from "./database/open.ts";
import { statementsOf } from "./database/statements.ts";
import { isAtOrBelow } from "./database/subtree.ts";

/** A file or a folder of a source; without a path the whole source. */
export interface ErasedSubtree {
  readonly source: number;
  readonly below: RelativePath | undefined;
}

/** Prepares the statements. */
export function openErasures(db: Sqlite) {
  const { run, values, has } = statementsOf(db);
  const texts = values<Selected, string>(`SELECT name FROM trash WHERE ${at("path")} OR ${IS_OF}`);
  const removals = [
    `DELETE FROM files WHERE ${at("path")} OR ${IS_OF}`,
    `DELETE FROM trash WHERE ${at("path")} OR ${IS_OF}`,
    `DELETE FROM activity WHERE ${at("path")} OR ${at("from_path")} OR ${IS_OF}`,
    `DELETE FROM intents WHERE ${at("path")} OR ${IS_OF}`,
    `DELETE FROM ignore_files WHERE ${at("folder")}`,
    `DELETE FROM mounts WHERE ${at("path")}`,
    "INSERT OR IGNORE INTO tombstones (doc_id) SELECT value FROM json_each(@docIds)",
  ].map((sql) => run<Selected>(sql));

  return {
    /** Files at a subtree that the ledger knows. */
    paths: values<[ErasedSubtree], RelativePath>(
      `SELECT path FROM files WHERE ${at("path")} UNION SELECT path FROM trash WHERE ${at("path")}`,
    ),
    /**
     * Resources that files at a subtree have or had. Leaves out those of files that were moved elsewhere. Known as far back as the log of
     * activities and the trash go.
     */
    resources: values<[ErasedSubtree], string>(`
      SELECT DISTINCT doc_id FROM (
        SELECT doc_id FROM files WHERE ${at("path")}
        UNION ALL SELECT doc_id FROM intents WHERE ${at("path")}
        UNION ALL SELECT doc_id FROM trash WHERE ${at("path")}
        UNION ALL SELECT doc_id FROM activity WHERE ${at("path")} OR ${at("from_path")}
      ) AS known WHERE doc_id IS NOT NULL AND NOT EXISTS (
        SELECT 1 FROM files WHERE files.doc_id = known.doc_id AND NOT (${at("files.path", "files.source")}))`),
    /** Reports whether a create at a subtree has no answer yet, so that it may have made a resource of unknown id. */
    hasOpenCreates: has<[ErasedSubtree]>(
      `SELECT 1 FROM intents WHERE ${at("path")} AND (kind = 'create' OR kind = 'doubt' AND doc_id IS NULL) LIMIT 1`,
    ),
    /** Files in the trash folder of saved texts at a subtree, or of resources. */
    texts: (subtree: ErasedSubtree, docIds: readonly string[]): string[] =>
      texts({ ...subtree, docIds: JSON.stringify(docIds) }),
    /** Removes the rows of a subtree and of resources, which become tombstones. */
    remove: (subtree: ErasedSubtree, docIds: readonly string[]): void => {
      for (const remove of removals) remove({ ...subtree, docIds: JSON.stringify(docIds) });
    },
    /** Rewrites the file without its free space, and empties its log. Throws `erase_busy`. */
    scrub: (): void => {
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

/** A subtree, and resources as a list in JSON. */
type Selected = [ErasedSubtree & { readonly docIds: string }];

const IS_OF = "doc_id IN (SELECT value FROM json_each(@docIds))";

/** True of a row at or below the subtree. */
function at(path: string, source = "source"): string {
  return `(${source} = @source AND ${isAtOrBelow(path)})`;
}
