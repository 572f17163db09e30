import type { KnownFile, LedgerFile, RelativePath } from "../../plan/model.ts";
import type { Sqlite } from "../database/open.ts";
import type { Shapes } from "./shapes.ts";

/** Reads rows. */
export interface FileRows {
  /**
   * Returns all rows of a source, unordered, read in pages on demand. A concurrent write may or may not be seen. It
   * never hides or repeats other rows.
   */
  all(source: number): Iterable<KnownFile>;
  /** Returns rows at or below any of the paths, read as `all` does. A row may appear twice if paths overlap. */
  below(source: number, paths: readonly RelativePath[]): Iterable<KnownFile>;
  /** Returns the row of a path, except held ones. */
  living(source: number, path: RelativePath): KnownFile | undefined;
  byInode(source: number, ino: number): KnownFile[];
  /** Returns the row that has a resource, in whatever state, with its source. */
  byDoc(docId: string): (KnownFile & { readonly source: number }) | undefined;
  get(id: number): LedgerFile | undefined;
  /** Returns at most `limit` rows of a source, in no particular order. */
  some(source: number, limit: number): KnownFile[];
  ownsDoc(docId: string): boolean;
  isEmpty(source: number): boolean;
}

const KNOWN = `id, path, doc_id AS docId, state, size_bytes AS sizeBytes, mtime_ms AS mtimeMs, ctime_ms AS ctimeMs, ino, rules_key AS rulesKey`;

/** Rows of a page. The loop waits while they are read, for some milliseconds. */
const PAGE_ROWS = 1000;

/** Prepares the statements that read rows of files. */
export function prepareRows(db: Sqlite, shapes: Shapes): FileRows {
  // By a range of ids over all sources: a page costs the same wherever this source's rows lie.
  const page = db.prepare<[number, number, number], KnownFile>(
    `SELECT ${KNOWN} FROM files WHERE id > ? AND id <= ? AND +source = ?`,
  );
  const lastId = db.prepare<[], number | null>("SELECT max(id) FROM files").pluck();
  const at = db.prepare<[number, string], KnownFile>(
    `SELECT ${KNOWN} FROM files WHERE source = ? AND path = ? AND state NOT IN ('held', 'doomed')`,
  );
  const under = db.prepare<[number, string, string, number], KnownFile>(
    `SELECT ${KNOWN} FROM files WHERE source = ? AND path >= ? AND path < ? AND state NOT IN ('held', 'doomed')
     ORDER BY path LIMIT ?`,
  );
  const held = db.prepare<[number], KnownFile>(
    `SELECT ${KNOWN} FROM files WHERE source = ? AND state IN ('held', 'doomed') AND state <> 'agreed'`,
  );
  const some = db.prepare<[number, number], KnownFile>(`SELECT ${KNOWN} FROM files WHERE source = ? LIMIT ?`);
  const byInode = db.prepare<[number, number], KnownFile>(
    `SELECT ${KNOWN} FROM files WHERE source = ? AND ino = ?`,
  );
  const byDoc = db.prepare<[string], KnownFile & { source: number }>(
    `SELECT ${KNOWN}, source FROM files WHERE doc_id = ?`,
  );
  const get = db.prepare<[number], KnownFile & { shapeId: number | null } & Omit<LedgerFile, "shape">>(
    `SELECT ${KNOWN}, hash, digest, title, label, extractor_version AS extractorVersion, sent, shape AS shapeId, file_url AS fileUrl,
       metadata_hash AS metadataHash
     FROM files WHERE id = ?`,
  );
  const owns = db
    .prepare<[string, string], number>(
      "SELECT 1 FROM files WHERE doc_id = ? UNION ALL SELECT 1 FROM intents WHERE doc_id = ? LIMIT 1",
    )
    .pluck();
  const any = db.prepare<[number], number>("SELECT 1 FROM files WHERE source = ? LIMIT 1").pluck();

  return {
    all: function* (source) {
      const last = lastId.get() ?? 0;
      for (let from = 0; from < last; from += PAGE_ROWS) yield* page.all(from, from + PAGE_ROWS, source);
    },
    below: function* (source, paths) {
      yield* held.all(source);
      for (const path of paths) {
        const exact = at.get(source, path);
        if (exact !== undefined) yield exact;
        // "0" follows "/" in byte order: the range is everything below the folder.
        let from = `${path}/`;
        for (;;) {
          const rows = under.all(source, from, `${path}0`, PAGE_ROWS);
          yield* rows;
          const last = rows.at(-1);
          if (last === undefined || rows.length < PAGE_ROWS) break;
          from = `${last.path}\0`; // The next path there can be: no path of a disk holds a NUL.
        }
      }
    },
    living: (source, path) => at.get(source, path),
    byInode: (source, ino) => byInode.all(source, ino),
    byDoc: (docId) => byDoc.get(docId),
    get: (id) => {
      const row = get.get(id);
      if (row === undefined) return undefined;
      const { shapeId, ...file } = row;
      return { ...file, shape: shapes.get(shapeId) };
    },
    some: (source, limit) => some.all(source, limit),
    ownsDoc: (docId) => owns.get(docId, docId) !== undefined,
    isEmpty: (source) => any.get(source) === undefined,
  };
}
