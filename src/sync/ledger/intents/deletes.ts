import type { DocumentKind, RelativePath, ScanEntry } from "../../plan/model.ts";
import type { Shapes } from "../files/shapes.ts";
import type { Sqlite } from "../database/open.ts";
import { type IntentRow, INTENT_COLUMNS, intentOf } from "./creates.ts";

/** A resource to delete, which no row of files owns any more. */
export interface DeleteIntent {
  readonly id: number;
  readonly source: number;
  readonly path: RelativePath;
  readonly docId: string;
}

/** A resource to delete, whose intent is in the ledger. */
export interface Deletion {
  readonly id: number;
  readonly path: RelativePath;
  readonly docId: string;
  /** The file exists: this resource is an extra one, was replaced, or remains of a failed create. */
  readonly isSpare?: boolean;
}

/** A deleted file whose text must be saved before its resource goes. */
export interface UnsavedText {
  /** How often saving may still fail before the resource goes regardless. */
  readonly tries: number;
  readonly title: string;
  readonly kind: DocumentKind;
  /** SHA-256 of the file's bytes; empty when unknown. */
  readonly hash: string;
  readonly entry: ScanEntry;
  /** For an upload its address at the service, for a link the address that it holds. */
  readonly url: string | undefined;
}

/**
 * Retains about this many tombstones of the newest deletes, 100 MB at most. A list may show a deleted resource for
 * minutes. A service restored from a backup shows it for as long as the backup is old.
 */
const TOMBSTONES_MAX = 1_000_000;
const PRUNE_EVERY = 1000;

/** Prepares the statements over deletes. `remove` removes an intent by its id. */
export function prepareDeletes(db: Sqlite, shapes: Shapes, remove: (id: number) => void) {
  const remember = db.prepare(
    "INSERT INTO intents (kind, source, path, doc_id, key, at_ms) VALUES ('delete', ?, ?, ?, '', 0)",
  );
  const rememberFile = db.prepare(
    `INSERT INTO intents (kind, source, path, doc_id, key, at_ms, size_bytes, mtime_ms, ctime_ms, ino, hash, title, shape,
       file_url, keep_tries)
     SELECT 'delete', source, path, doc_id, '', 0, size_bytes, mtime_ms, ctime_ms, ino, hash, title, shape, file_url, ?
     FROM files WHERE id = ?`,
  );
  const unsavedText = db.prepare<[number], IntentRow & { tries: number }>(
    `SELECT ${INTENT_COLUMNS}, keep_tries AS tries FROM intents WHERE id = ? AND keep_tries > 0`,
  );
  const setSaveTries = db.prepare("UPDATE intents SET keep_tries = ? WHERE id = ?");
  const refuse = db.prepare("UPDATE intents SET error_message = ? WHERE id = ?");
  const bury = db.prepare("INSERT OR IGNORE INTO tombstones (doc_id) VALUES (?)");
  const prune = db.prepare("DELETE FROM tombstones WHERE id <= (SELECT max(id) FROM tombstones) - ?");
  let buried = 0;
  const isDeleted = db
    .prepare<[string, string], number>(
      `SELECT 1 FROM tombstones WHERE doc_id = ?
       UNION ALL SELECT 1 FROM intents WHERE kind = 'delete' AND doc_id = ? LIMIT 1`,
    )
    .pluck();

  return {
    delete: (source: number, path: RelativePath, docId: string): number =>
      Number(remember.run(source, path, docId).lastInsertRowid),
    /**
     * Records the delete of a row's resource because its file is gone. Call it before the row is removed. Saving the
     * file's text first is tried `keepTries` times.
     */
    deleteFile: (fileId: number, keepTries: number): number =>
      Number(rememberFile.run(keepTries, fileId).lastInsertRowid),
    /** Returns what must be saved of a resource before it is deleted; undefined: nothing. */
    unsavedText: (id: number): UnsavedText | undefined => {
      const row = unsavedText.get(id);
      if (row === undefined) return undefined;
      const { tries, title, hash } = row;
      const { entry, shape, fileUrl } = intentOf(row, shapes).observed;
      return { tries, title, kind: shape.kind, hash, entry, url: fileUrl };
    },
    setSaveTries: (id: number, tries: number): void => void setSaveTries.run(tries, id),
    /** Records that the service refused the delete, in its words; null: it no longer refuses. */
    refuse: (id: number, message: string | null): void => void refuse.run(message, id),
    /** Records that the delete is done. Its resource becomes a tombstone. */
    deleted: (id: number, docId: string): void => {
      remove(id);
      bury.run(docId);
      buried += 1;
      if (buried % PRUNE_EVERY === 0) prune.run(TOMBSTONES_MAX);
    },
    /** Reports whether this ledger deleted the resource, or is about to. */
    isDeleted: (docId: string): boolean => isDeleted.get(docId, docId) !== undefined,
  };
}
