import { randomUUID } from "node:crypto";
import type { DocumentKind, RelativePath, ScanEntry } from "../plan/model.ts";
import { sameIdentity } from "../plan/moves.ts";
import { observedColumns, observedOf, openShapes, type Observed, type Shapes } from "./files.ts";
import { openMeta } from "./meta.ts";
import type { Sqlite } from "./open.ts";

/** A create that was about to leave. */
export interface CreateIntent {
  readonly id: number;
  readonly source: number;
  readonly path: RelativePath;
  /** Idempotency key, the same for every attempt. */
  readonly key: string;
  readonly atMs: number;
  /** The service's clock minus ours when the intent was written; null: no answer had shown it. */
  readonly clockOffsetMs: number | null;
  readonly attempts: number;
  /** The resource in the answer to a create that was in doubt; null while no answer is known. */
  readonly docId: string | null;
  readonly observed: Observed;
  /** An earlier attempt under another key had other metadata: it may have made the resource. */
  readonly isOther?: true;
}

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

/** Records of what was sent and has no answer. Changes are plain statements: run them inside a group commit. */
export interface Intents extends CreateIntents, DeleteIntents, OpenIntents {
  remove(id: number): void;
}

/** Records creates. */
interface CreateIntents {
  /** Returns the intent's id. */
  create(source: number, key: string, atMs: number, observed: Observed): number;
  setFileUrl(id: number, fileUrl: string): void;
  /**
   * Resumes the unanswered create of the same file; undefined if there is none. Under its key, a service that honours
   * keys repeats the answer it gave, or would have given, then. With other metadata it is another request, which gets a key of
   * its own and `isOther`.
   */
  revive(source: number, observed: Observed): CreateIntent | undefined;
  /**
   * Reports whether the resource was found after a lost answer to a create of exactly this file, so that the service
   * may have all of it.
   */
  isFound(docId: string, observed: Observed): boolean;
  /**
   * Records that the resource may hold something else, or that it was acknowledged. `isFound` is then false.
   */
  forgetFound(docId: string): void;
  /** Replaces the key after what was made under the old one was deleted: the next attempt is another request. */
  setKey(id: number, key: string): void;
  /** Records that another attempt is about to leave although an earlier one may have taken effect. */
  again(id: number): void;
  /** Records that the create is settled, although an attempt of it may have made, or still make, an extra resource. */
  doubt(id: number, docId: string | null): void;
  /** The service's clock minus ours, as the last answer showed it; undefined: none has. Each create retains it. */
  clockOffset(): number | undefined;
  setClockOffset(ms: number): void;
}

/** Records deletes. */
interface DeleteIntents {
  delete(source: number, path: RelativePath, docId: string): number;
  /**
   * Records the delete of a row's resource because its file is gone. Call it before the row is removed. Saving the
   * file's text first is tried `keepTries` times.
   */
  deleteFile(fileId: number, keepTries: number): number;
  /** Returns what must be saved of a resource before it is deleted; undefined: nothing. */
  unsavedText(id: number): UnsavedText | undefined;
  setSaveTries(id: number, tries: number): void;
  /** Records that the service refused the delete, in its words; null: it no longer refuses. */
  refuse(id: number, message: string | null): void;
  /** Records that the delete is done. Its resource becomes a tombstone. */
  deleted(id: number, docId: string): void;
  /** Reports whether this ledger deleted the resource, or is about to. */
  isDeleted(docId: string): boolean;
}

/** Lists what has no answer, in the order of its intents. */
interface OpenIntents {
  creates(source: number): CreateIntent[];
  /** Returns the creates of all configured sources. */
  allCreates(): CreateIntent[];
  /** The same, including doubts. */
  allOpen(): CreateIntent[];
  doubts(source: number): CreateIntent[];
  deletes(source: number): DeleteIntent[];
}

type Row = Omit<CreateIntent, "observed"> &
  Omit<Observed, "entry" | "shape" | "fileUrl" | "metadataHash"> &
  Omit<ScanEntry, "path"> & {
    shapeId: number | null;
    fileUrl: string | null;
    metadataHash: string | null;
  };

const COLUMNS = `id, source, path, key, at_ms AS atMs, clock_offset_ms AS clockOffsetMs, attempts, doc_id AS docId,
  size_bytes AS sizeBytes, mtime_ms AS mtimeMs, ctime_ms AS ctimeMs, ino, rules_key AS rulesKey, hash, digest, title, label,
  extractor_version AS extractorVersion, shape AS shapeId, file_url AS fileUrl, metadata_hash AS metadataHash`;

/**
 * Retains about this many tombstones of the newest deletes, 100 MB at most. A list may show a deleted resource for
 * minutes. A service restored from a backup shows it for as long as the backup is old.
 */
const TOMBSTONES_MAX = 1_000_000;
const PRUNE_EVERY = 1000;

/** Prepares the statements over intents. */
export function openIntents(db: Sqlite): Intents {
  const shapes = openShapes(db);
  const remove = db.prepare("DELETE FROM intents WHERE id = ?");
  const removeIntent = (id: number): void => void remove.run(id);
  return {
    ...prepareCreates(db, shapes, removeIntent),
    ...prepareDeletes(db, shapes, removeIntent),
    ...prepareLists(db, shapes),
    remove: removeIntent,
  };
}

function prepareCreates(db: Sqlite, shapes: Shapes, remove: (id: number) => void): CreateIntents {
  const meta = openMeta(db);
  const clockOffset = (): number | undefined => meta.number("clock_offset_ms");
  const create = db.prepare(
    `INSERT INTO intents (kind, source, path, key, at_ms, clock_offset_ms, size_bytes, mtime_ms, ctime_ms, ino, rules_key,
       hash, digest, title, label, extractor_version, shape, file_url, metadata_hash)
     VALUES ('create', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  );
  const setFileUrl = db.prepare("UPDATE intents SET file_url = ? WHERE id = ?");
  const doubtAt = db.prepare<[number, string], Row>(
    `SELECT ${COLUMNS} FROM intents WHERE kind = 'doubt' AND source = ? AND path = ? AND doc_id IS NULL
     ORDER BY id DESC LIMIT 1`,
  );
  const doubtOf = db.prepare<[string], Row>(
    `SELECT ${COLUMNS} FROM intents WHERE kind = 'doubt' AND doc_id = ? ORDER BY id DESC LIMIT 1`,
  );
  // The hash of a file is never empty.
  const forgetFound = db.prepare("UPDATE intents SET hash = '' WHERE kind = 'doubt' AND doc_id = ?");
  const setAttempts = db.prepare("UPDATE intents SET attempts = ? WHERE id = ?");
  const setKey = db.prepare("UPDATE intents SET key = ? WHERE id = ?");
  const again = db.prepare("UPDATE intents SET attempts = attempts + 1 WHERE id = ?");
  const doubt = db.prepare("UPDATE intents SET kind = 'doubt', doc_id = ? WHERE id = ?");

  const add = (
    source: number,
    key: string,
    atMs: number,
    observed: Observed,
    offsetMs: number | null = clockOffset() ?? null,
  ): number => {
    const { path } = observed.entry;
    const columns = observedColumns(observed, shapes);
    return Number(create.run(source, path, key, atMs, offsetMs, ...columns).lastInsertRowid);
  };

  return {
    create: (source, key, atMs, observed) => add(source, key, atMs, observed),
    setFileUrl: (id, fileUrl) => void setFileUrl.run(fileUrl, id),
    revive: (source, now) => {
      const row = doubtAt.get(source, now.entry.path);
      if (row === undefined) return undefined;
      const before = intentOf(row, shapes);
      if (!isSameDocument(before.observed, now)) return undefined;
      const isOther = !hasSameMetadata(before.observed, now);
      const key = isOther ? randomUUID() : row.key;
      const attempts = row.attempts + 1;
      const observed = { ...now, fileUrl: row.fileUrl ?? undefined };
      remove(row.id);
      const id = add(source, key, row.atMs, observed, row.clockOffsetMs);
      setAttempts.run(attempts, id);
      return { ...before, id, key, attempts, observed, ...(isOther && { isOther: true as const }) };
    },
    isFound: (docId, now) => {
      const row = doubtOf.get(docId);
      if (row === undefined) return false;
      const before = intentOf(row, shapes).observed;
      return isSameDocument(before, now) && hasSameMetadata(before, now);
    },
    forgetFound: (docId) => void forgetFound.run(docId),
    setKey: (id, key) => void setKey.run(key, id),
    again: (id) => void again.run(id),
    doubt: (id, docId) => void doubt.run(docId, id),
    clockOffset,
    setClockOffset: (ms) => meta.set("clock_offset_ms", String(ms)),
  };
}

function prepareDeletes(db: Sqlite, shapes: Shapes, remove: (id: number) => void): DeleteIntents {
  const remember = db.prepare(
    "INSERT INTO intents (kind, source, path, doc_id, key, at_ms) VALUES ('delete', ?, ?, ?, '', 0)",
  );
  const rememberFile = db.prepare(
    `INSERT INTO intents (kind, source, path, doc_id, key, at_ms, size_bytes, mtime_ms, ctime_ms, ino, hash, title, shape,
       file_url, keep_tries)
     SELECT 'delete', source, path, doc_id, '', 0, size_bytes, mtime_ms, ctime_ms, ino, hash, title, shape, file_url, ?
     FROM files WHERE id = ?`,
  );
  const unsavedText = db.prepare<[number], Row & { tries: number }>(
    `SELECT ${COLUMNS}, keep_tries AS tries FROM intents WHERE id = ? AND keep_tries > 0`,
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
    delete: (source, path, docId) => Number(remember.run(source, path, docId).lastInsertRowid),
    deleteFile: (fileId, keepTries) => Number(rememberFile.run(keepTries, fileId).lastInsertRowid),
    unsavedText: (id) => {
      const row = unsavedText.get(id);
      if (row === undefined) return undefined;
      const { tries, title, hash } = row;
      const { entry, shape, fileUrl } = intentOf(row, shapes).observed;
      return { tries, title, kind: shape.kind, hash, entry, url: fileUrl };
    },
    setSaveTries: (id, tries) => void setSaveTries.run(tries, id),
    refuse: (id, message) => void refuse.run(message, id),
    deleted: (id, docId) => {
      remove(id);
      bury.run(docId);
      buried += 1;
      if (buried % PRUNE_EVERY === 0) prune.run(TOMBSTONES_MAX);
    },
    isDeleted: (docId) => isDeleted.get(docId, docId) !== undefined,
  };
}

function prepareLists(db: Sqlite, shapes: Shapes): OpenIntents {
  const open = db.prepare<[number, string], Row>(
    `SELECT ${COLUMNS} FROM intents WHERE source = ? AND kind = ? ORDER BY id`,
  );
  const allCreates = db.prepare<[], Row>(
    `SELECT ${COLUMNS} FROM intents
     WHERE kind = 'create' AND source IN (SELECT id FROM sources WHERE active = 1) ORDER BY id`,
  );
  const allOpen = db.prepare<[], Row>(
    `SELECT ${COLUMNS} FROM intents
     WHERE kind IN ('create', 'doubt') AND source IN (SELECT id FROM sources WHERE active = 1) ORDER BY id`,
  );
  const deletes = db.prepare<[number], DeleteIntent>(
    "SELECT id, source, path, doc_id AS docId FROM intents WHERE source = ? AND kind = 'delete' ORDER BY id",
  );
  const intentsOf = (rows: readonly Row[]): CreateIntent[] => rows.map((row) => intentOf(row, shapes));
  return {
    creates: (source) => intentsOf(open.all(source, "create")),
    allCreates: () => intentsOf(allCreates.all()),
    allOpen: () => intentsOf(allOpen.all()),
    doubts: (source) => intentsOf(open.all(source, "doubt")),
    deletes: (source) => deletes.all(source),
  };
}

function intentOf(row: Row, shapes: Shapes): CreateIntent {
  const { id, source, path, key, atMs, clockOffsetMs, attempts, docId } = row;
  const observed = observedOf(row, shapes.get(row.shapeId));
  return { id, source, path, key, atMs, clockOffsetMs, attempts, docId, observed };
}

/**
 * Reports whether a create equals an earlier one but for metadata. The address of an upload is taken over; that of a link must
 * be the same.
 */
function isSameDocument(before: Observed, now: Observed): boolean {
  const { shape } = before;
  return (
    before.hash === now.hash &&
    before.digest === now.digest &&
    before.title === now.title &&
    before.label === now.label &&
    shape.kind === now.shape.kind &&
    shape.tier === now.shape.tier &&
    shape.ownerId === now.shape.ownerId &&
    shape.settings.strategy === now.shape.settings.strategy &&
    shape.settings.chunkSize === now.shape.settings.chunkSize &&
    shape.settings.chunkOverlap === now.shape.settings.chunkOverlap &&
    (shape.kind === "file" || before.fileUrl === now.fileUrl)
  );
}

/** Reports whether the same metadata was sent. It includes the times of the file, which its hash leaves out. */
function hasSameMetadata(before: Observed, now: Observed): boolean {
  if (before.metadataHash === undefined && now.metadataHash === undefined) return true;
  return before.metadataHash === now.metadataHash && sameIdentity(before.entry, now.entry);
}
