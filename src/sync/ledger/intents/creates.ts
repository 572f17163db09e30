import { randomUUID } from "node:crypto";
import type { RelativePath, ScanEntry } from "../../plan/model.ts";
import { sameIdentity } from "../../plan/moves.ts";
import { observedColumns, observedOf, type Observed } from "../files/observed.ts";
import type { Shapes } from "../files/shapes.ts";
import { openMeta } from "../database/meta.ts";
import type { Sqlite } from "../database/open.ts";

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

/** Records creates. */
export interface CreateIntents {
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

/** An intent with its document, as `INTENT_COLUMNS` reads it. */
export type IntentRow = Omit<CreateIntent, "observed"> &
  Omit<Observed, "entry" | "shape" | "fileUrl" | "metadataHash"> &
  Omit<ScanEntry, "path"> & {
    shapeId: number | null;
    fileUrl: string | null;
    metadataHash: string | null;
  };

/** The columns of an `IntentRow`. */
export const INTENT_COLUMNS = `id, source, path, key, at_ms AS atMs, clock_offset_ms AS clockOffsetMs, attempts, doc_id AS docId,
  size_bytes AS sizeBytes, mtime_ms AS mtimeMs, ctime_ms AS ctimeMs, ino, rules_key AS rulesKey, hash, digest, title, label,
  extractor_version AS extractorVersion, shape AS shapeId, file_url AS fileUrl, metadata_hash AS metadataHash`;

/** Prepares the statements over creates. `remove` removes an intent by its id. */
export function prepareCreates(db: Sqlite, shapes: Shapes, remove: (id: number) => void): CreateIntents {
  const meta = openMeta(db);
  const clockOffset = (): number | undefined => meta.number("clock_offset_ms");
  const create = db.prepare(
    `INSERT INTO intents (kind, source, path, key, at_ms, clock_offset_ms, size_bytes, mtime_ms, ctime_ms, ino, rules_key,
       hash, digest, title, label, extractor_version, shape, file_url, metadata_hash)
     VALUES ('create', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  );
  const setFileUrl = db.prepare("UPDATE intents SET file_url = ? WHERE id = ?");
  const doubtAt = db.prepare<[number, string], IntentRow>(
    `SELECT ${INTENT_COLUMNS} FROM intents WHERE kind = 'doubt' AND source = ? AND path = ? AND doc_id IS NULL
     ORDER BY id DESC LIMIT 1`,
  );
  const doubtOf = db.prepare<[string], IntentRow>(
    `SELECT ${INTENT_COLUMNS} FROM intents WHERE kind = 'doubt' AND doc_id = ? ORDER BY id DESC LIMIT 1`,
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

/** Returns the create that a row records. */
export function intentOf(row: IntentRow, shapes: Shapes): CreateIntent {
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
