import type { KnownFile, LedgerFile, RelativePath } from "../../plan/model.ts";
import type { Sqlite } from "../database/open.ts";
import { statementsOf } from "../database/statements.ts";
import type { Shapes } from "./shapes.ts";

/** Reads rows. */
export type FileRows = ReturnType<typeof prepareRows>;

/** Everything that the ledger records of a file. */
export interface FileRow extends LedgerFile {
  readonly source: number;
  /** How the service stores text, and title with description, where it stores another form of them; otherwise null. */
  readonly storedDigest: string | null;
  readonly storedLabel: string | null;
  /** When the service last changed the resource, by its clock, as it answered; null where the answer did not include it. */
  readonly storedMs: number | null;
  /** Orders the acknowledgements, near the time of day. */
  readonly acknowledgedMs: number;
  /** The service reported the resource gone, and the file is not created again yet. Nothing is known of the resource. */
  readonly isLost: boolean;
  readonly error: { readonly code: string; readonly message: string } | null;
  readonly tries: number;
  /** Searches find some version of the resource. */
  readonly isFindable: boolean;
  /** When a parked file is tried again. */
  readonly retryAtMs: number | null;
  /** The part of the document that the service could not read; null if it read all of it. */
  readonly warning: string | null;
}

/** A row whose resource the service acknowledged. */
export type AcknowledgedRow = FileRow & { readonly docId: string };

type Columns = Omit<FileRow, "shape" | "error" | "isLost" | "isFindable"> & {
  readonly findable: number;
  readonly shapeId: number | null;
  readonly code: string | null;
  readonly message: string | null;
};

const KNOWN = `id, path, doc_id AS docId, state, size_bytes AS sizeBytes, mtime_ms AS mtimeMs, ctime_ms AS ctimeMs, ino, rules_key AS rulesKey`;
const WHOLE = `${KNOWN}, source, hash, digest, title, label, extractor_version AS extractorVersion, sent, shape AS shapeId,
  file_url AS fileUrl, metadata_hash AS metadataHash, found_digest AS storedDigest, stored_label AS storedLabel,
  stored_ms AS storedMs, acknowledged_ms AS acknowledgedMs, error_code AS code, error_message AS message, tries,
  retry_at_ms AS retryAtMs, warning, findable`;

/** Rows of a page. The loop waits while they are read, for some milliseconds. */
const PAGE_ROWS = 1000;

/** Prepares the statements that read rows of files. */
export function prepareRows(db: Sqlite, shapes: Shapes) {
  return { ...prepareKnown(db), ...prepareWhole(db, shapes) };
}

/** Prepares the statements that read as much of rows as a plan needs. */
function prepareKnown(db: Sqlite) {
  const { get, all, value, has } = statementsOf(db);
  // By a range of ids over all sources: a page costs the same wherever this source's rows lie.
  const page = all<[afterId: number, lastId: number, source: number], KnownFile>(
    `SELECT ${KNOWN} FROM files WHERE id > ? AND id <= ? AND +source = ?`,
  );
  const lastId = value<[], number | null>("SELECT max(id) FROM files");
  /** Returns the row of a path, except held ones. */
  const living = get<[source: number, path: RelativePath], KnownFile>(
    `SELECT ${KNOWN} FROM files WHERE source = ? AND path = ? AND state NOT IN ('held', 'doomed')`,
  );
  const under = all<[source: number, from: string, to: string, limit: number], KnownFile>(
    `SELECT ${KNOWN} FROM files WHERE source = ? AND path >= ? AND path < ? AND state NOT IN ('held', 'doomed')
     ORDER BY path LIMIT ?`,
  );
  const held = all<[source: number], KnownFile>(
    `SELECT ${KNOWN} FROM files WHERE source = ? AND state IN ('held', 'doomed') AND state <> 'agreed'`,
  );
  const any = has<[source: number]>("SELECT 1 FROM files WHERE source = ? LIMIT 1");

  return {
    /**
     * Returns all rows of a source, unordered, read in pages on demand. A concurrent write may or may not be seen. It
     * never hides or repeats other rows.
     */
    all: function* (source: number): Iterable<KnownFile> {
      const last = lastId() ?? 0;
      for (let from = 0; from < last; from += PAGE_ROWS) yield* page(from, from + PAGE_ROWS, source);
    },
    /** Returns rows at or below any of the paths, read as `all` does. A row may appear twice if paths overlap. */
    below: function* (source: number, paths: readonly RelativePath[]): Iterable<KnownFile> {
      yield* held(source);
      for (const path of paths) {
        const exact = living(source, path);
        if (exact !== undefined) yield exact;
        // "0" follows "/" in byte order: the range is everything below the folder.
        let from = `${path}/`;
        for (;;) {
          const rows = under(source, from, `${path}0`, PAGE_ROWS);
          yield* rows;
          const last = rows.at(-1);
          if (last === undefined || rows.length < PAGE_ROWS) break;
          from = `${last.path}\0`; // The next path there can be: no path of a disk holds a NUL.
        }
      }
    },
    living,
    byInode: all<[source: number, ino: number], KnownFile>(
      `SELECT ${KNOWN} FROM files WHERE source = ? AND ino = ?`,
    ),
    /** Returns at most `limit` rows of a source, in no particular order. */
    some: all<[source: number, limit: number], KnownFile>(
      `SELECT ${KNOWN} FROM files WHERE source = ? LIMIT ?`,
    ),
    isEmpty: (source: number): boolean => !any(source),
  };
}

/** Prepares the statements that read whole rows. */
function prepareWhole(db: Sqlite, shapes: Shapes) {
  const { get, all, value, has } = statementsOf(db);
  const byId = get<[id: number], Columns>(`SELECT ${WHOLE} FROM files WHERE id = ?`);
  const withDoc = get<[docId: string], Columns>(`SELECT ${WHOLE} FROM files WHERE doc_id = ?`);
  const allAt = all<[source: number, path: RelativePath], Columns>(
    `SELECT ${WHOLE} FROM files WHERE source = ? AND path = ? ORDER BY state IN ('held', 'doomed'), id`,
  );
  // In row order: an index by source would need a new sort for every page.
  const withResource = all<[afterId: number, source: number, limit: number], Columns>(
    `SELECT ${WHOLE} FROM files NOT INDEXED
     WHERE id > ? AND doc_id IS NOT NULL AND shape IS NOT NULL AND +source = ? ORDER BY id LIMIT ?`,
  );
  const owns = has<[docId: string, same: string]>(
    "SELECT 1 FROM files WHERE doc_id = ? UNION ALL SELECT 1 FROM intents WHERE doc_id = ? LIMIT 1",
  );
  const isDeleted = has<[docId: string]>("SELECT 1 FROM tombstones WHERE doc_id = ?");
  const latest = value<[], number | null>("SELECT max(acknowledged_ms) FROM files");

  const rowOf = ({ shapeId, code, message, findable, ...row }: Columns): FileRow => ({
    ...row,
    isFindable: row.docId !== null && findable === 1,
    shape: shapes.get(shapeId),
    isLost: shapeId === null && row.docId !== null,
    error: code === null ? null : { code, message: message ?? "" },
  });
  const ownsDoc = (docId: string): boolean => owns(docId, docId);
  const byDoc = (docId: string): FileRow | undefined => {
    const row = withDoc(docId);
    return row && rowOf(row);
  };

  return {
    get: (id: number): FileRow | undefined => {
      const row = byId(id);
      return row && rowOf(row);
    },
    /** Returns the row that has a resource, in whatever state. */
    byDoc,
    /** Returns the rows of a path, held ones last: a path may have several of them. */
    at: (source: number, path: RelativePath): FileRow[] => allAt(source, path).map(rowOf),
    // The statement selects rows with a resource.
    /** Returns rows of a source that have a resource, by ascending id above `afterId`. Leaves out lost ones. */
    page: (source: number, afterId: number, limit: number): AcknowledgedRow[] =>
      withResource(afterId, source, limit).map(rowOf) as AcknowledgedRow[],
    /** Returns the row that has a resource, unless the service reported that gone. */
    acknowledged: (docId: string): AcknowledgedRow | undefined => {
      const row = byDoc(docId);
      return row?.isLost === false ? { ...row, docId } : undefined;
    },
    /** Reports whether this ledger has a resource, names it in an intent, or deleted it: a stale list may still show it. */
    knows: (docId: string): boolean => ownsDoc(docId) || isDeleted(docId),
    /** Returns the latest acknowledgement of all. */
    latestMs: (): number => latest() ?? 0,
    ownsDoc,
  };
}
