import type { DocumentKind, RelativePath, ScanEntry } from "../../plan/model.ts";
import type { Shapes } from "../files/shapes.ts";
import type { Sqlite } from "../database/open.ts";
import { statementsOf } from "../database/statements.ts";
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
  const { run, insert, get, has } = statementsOf(db);
  const add = insert<[source: number, path: RelativePath, docId: string]>(
    "INSERT INTO intents (kind, source, path, doc_id, key, at_ms) VALUES ('delete', ?, ?, ?, '', 0)",
  );
  const addOf = insert(
    `INSERT INTO intents (kind, source, path, doc_id, key, at_ms, size_bytes, mtime_ms, ctime_ms, ino, hash, title, shape,
       file_url, keep_tries)
     SELECT 'delete', source, path, doc_id, '', 0, size_bytes, mtime_ms, ctime_ms, ino, hash, title, shape, file_url, ?
     FROM files WHERE id = ?`,
  );
  const unsavedText = get<[id: number], IntentRow & { tries: number }>(
    `SELECT ${INTENT_COLUMNS}, keep_tries AS tries FROM intents WHERE id = ? AND keep_tries > 0`,
  );
  const setSaveTries = run("UPDATE intents SET keep_tries = ? WHERE id = ?");
  const refuse = run("UPDATE intents SET error_message = ? WHERE id = ?");
  const bury = run<[docId: string]>("INSERT OR IGNORE INTO tombstones (doc_id) VALUES (?)");
  const prune = run<[rows: number]>(
    "DELETE FROM tombstones WHERE id <= (SELECT max(id) FROM tombstones) - ?",
  );
  let buried = 0;
  const isDeleted = has<[docId: string, same: string]>(
    `SELECT 1 FROM tombstones WHERE doc_id = ?
     UNION ALL SELECT 1 FROM intents WHERE kind = 'delete' AND doc_id = ? LIMIT 1`,
  );

  return {
    /** Returns the intent's id. */
    delete: add,
    /**
     * Records the delete of a row's resource because its file is gone. Call it before the row is removed. Saving the
     * file's text first is tried `keepTries` times.
     */
    deleteFile: (fileId: number, keepTries: number): number => addOf(keepTries, fileId),
    /** Returns what must be saved of a resource before it is deleted; undefined: nothing. */
    unsavedText: (id: number): UnsavedText | undefined => {
      const row = unsavedText(id);
      if (row === undefined) return undefined;
      const { tries, title, hash } = row;
      const { entry, shape, fileUrl } = intentOf(row, shapes).observed;
      return { tries, title, kind: shape.kind, hash, entry, url: fileUrl };
    },
    setSaveTries: (id: number, tries: number): void => setSaveTries(tries, id),
    /** Records that the service refused the delete, in its words; null: it no longer refuses. */
    refuse: (id: number, message: string | null): void => refuse(message, id),
    /** Records that the delete is done. Its resource becomes a tombstone. */
    deleted: (id: number, docId: string): void => {
      remove(id);
      bury(docId);
      buried += 1;
      if (buried % PRUNE_EVERY === 0) prune(TOMBSTONES_MAX);
    },
    /** Reports whether this ledger deleted the resource, or is about to. */
    isDeleted: (docId: string): boolean => isDeleted(docId, docId),
  };
}
