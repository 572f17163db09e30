import type { RelativePath, ScanEntry } from "../../plan/model.ts";
import { sameShape } from "../../plan/decide.ts";
import { sameIdentity } from "../../plan/moves.ts";
import { observedColumns, observedOf, type Observed } from "../files/observed.ts";
import type { Shapes } from "../files/shapes.ts";
import type { Sqlite } from "../database/open.ts";
import { statementsOf } from "../database/statements.ts";

/** A create that was about to leave. */
export interface CreateIntent {
  readonly id: number;
  readonly source: number;
  readonly path: RelativePath;
  /** Idempotency key, the same for every attempt. */
  readonly key: string;
  readonly atMs: number;
  readonly attempts: number;
  /** The resource in the answer to a create that was in doubt; null while no answer is known. */
  readonly docId: string | null;
  readonly observed: Observed;
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
export const INTENT_COLUMNS = `id, source, path, key, at_ms AS atMs, attempts, doc_id AS docId,
  size_bytes AS sizeBytes, mtime_ms AS mtimeMs, ctime_ms AS ctimeMs, ino, rules_key AS rulesKey, hash, digest, title, label,
  extractor_version AS extractorVersion, shape AS shapeId, file_url AS fileUrl, metadata_hash AS metadataHash`;

/** Prepares the statements over creates. `remove` removes an intent by its id. */
export function prepareCreates(db: Sqlite, shapes: Shapes, remove: (id: number) => void) {
  const { run, insert, get } = statementsOf(db);
  const add = insert(
    `INSERT INTO intents (kind, source, path, key, at_ms, attempts, size_bytes, mtime_ms, ctime_ms, ino, rules_key,
       hash, digest, title, label, extractor_version, shape, file_url, metadata_hash)
     VALUES ('create', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  );
  const setFileUrl = run("UPDATE intents SET file_url = ? WHERE id = ?");
  const doubtAt = get<[source: number, path: RelativePath], IntentRow>(
    `SELECT ${INTENT_COLUMNS} FROM intents WHERE kind = 'doubt' AND source = ? AND path = ? AND doc_id IS NULL
     ORDER BY id DESC LIMIT 1`,
  );
  const setKey = run("UPDATE intents SET key = ? WHERE id = ?");
  const doubt = run("UPDATE intents SET kind = 'doubt', doc_id = ? WHERE id = ?");

  /** Records a create. Returns its intent's id. */
  const create = (source: number, key: string, atMs: number, observed: Observed, attempts = 1): number => {
    const facts = [observed.entry.path, key, atMs, attempts, ...observedColumns(observed, shapes)];
    return add(source, ...facts);
  };

  return {
    create,
    setFileUrl: (id: number, fileUrl: string | undefined): void => setFileUrl(fileUrl, id),
    /**
     * Resumes the unanswered create of exactly the same document; undefined if there is none. Under its key, a service that
     * honours keys repeats the answer it gave, or would have given, then.
     */
    revive: (source: number, now: Observed): CreateIntent | undefined => {
      const row = doubtAt(source, now.entry.path);
      if (row === undefined) return undefined;
      const before = intentOf(row, shapes);
      if (!isSameDocument(before.observed, now)) return undefined;
      const attempts = row.attempts + 1;
      const observed = { ...now, fileUrl: row.fileUrl ?? undefined };
      remove(row.id);
      const id = create(source, row.key, row.atMs, observed, attempts);
      return { ...before, id, attempts, observed };
    },
    /** Reports whether a create of some version of the path has no answer. */
    isDoubted: (source: number, path: RelativePath): boolean => doubtAt(source, path) !== undefined,
    /** Replaces the key after what was made under the old one was deleted: the next attempt is another request. */
    setKey: (id: number, key: string): void => setKey(key, id),
    /** Records that another attempt is about to leave although an earlier one may have taken effect. */
    again: run<[id: number]>("UPDATE intents SET attempts = attempts + 1 WHERE id = ?"),
    /** Records that the create is settled, although an attempt of it may have made, or still make, an extra resource. */
    doubt: (id: number, docId: string | null): void => doubt(docId, id),
    /** Forgets those: no attempt will act any more. */
    forgetDoubts: run<[source: number]>("DELETE FROM intents WHERE kind = 'doubt' AND source = ?"),
  };
}

/** Returns the create that a row records. */
export function intentOf(row: IntentRow, shapes: Shapes): CreateIntent {
  const { id, source, path, key, atMs, attempts, docId } = row;
  const observed = observedOf(row, shapes.get(row.shapeId));
  return { id, source, path, key, atMs, attempts, docId, observed };
}

/**
 * Reports whether a create equals an earlier one. The address of an upload is taken over; that of a link must be the same. The
 * label stands for the marker, too.
 */
function isSameDocument(before: Observed, now: Observed): boolean {
  return (
    before.hash === now.hash &&
    before.digest === now.digest &&
    before.title === now.title &&
    before.label === now.label &&
    sameShape(before.shape, now.shape) &&
    (before.shape.kind === "file" || before.fileUrl === now.fileUrl) &&
    hasSameMetadata(before, now)
  );
}

/** Reports whether the same metadata was sent. It includes the times of the file, which its hash leaves out. */
function hasSameMetadata(before: Observed, now: Observed): boolean {
  if (before.metadataHash === undefined && now.metadataHash === undefined) return true;
  return before.metadataHash === now.metadataHash && sameIdentity(before.entry, now.entry);
}
