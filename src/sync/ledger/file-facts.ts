import type { FileState, RelativePath } from "../plan/model.ts";
import type { Sqlite } from "./open.ts";

/** What the ledger knows about a path, for a person. */
export interface FileFacts {
  readonly id: number;
  readonly docId: string | null;
  readonly state: FileState;
  readonly sizeBytes: number;
  readonly mtimeMs: number;
  readonly ctimeMs: number;
  /** SHA-256 of the bytes that the service acknowledged, hex; empty when unknown. */
  readonly hash: string;
  readonly title: string;
  readonly fileUrl: string | null;
  readonly error: { readonly code: string; readonly message: string } | null;
  readonly tries: number;
  /** The part of the document that the service could not read; null if it read all of it. */
  readonly warning: string | null;
  /** When a parked file is tried again. */
  readonly retryAtMs: number | null;
}

/** A request that was sent, or is about to be, and is not acknowledged. */
export interface OpenIntent {
  readonly kind: "create" | "doubt" | "delete";
  readonly docId: string | null;
  /** Null for a delete, which has no time. */
  readonly atMs: number | null;
  readonly attempts: number;
  /** Why the service refused it. */
  readonly message: string | null;
}

/** Returns the rows of a path, held ones last: a path may have several of them. */
export function fileFacts(db: Sqlite, source: number, path: RelativePath): FileFacts[] {
  const rows = db
    .prepare<[number, string], FactsRow>(
      `SELECT id, doc_id AS docId, state, size_bytes AS sizeBytes, mtime_ms AS mtimeMs, ctime_ms AS ctimeMs, hash, title,
         file_url AS fileUrl, error_code AS code, error_message AS message, tries, warning,
         retry_at_ms AS retryAtMs
       FROM files WHERE source = ? AND path = ? ORDER BY state IN ('held', 'doomed'), id`,
    )
    .all(source, path);
  return rows.map(factsOf);
}

type FactsRow = Omit<FileFacts, "error"> & { readonly code: string | null; readonly message: string | null };

function factsOf({ code, message, ...row }: FactsRow): FileFacts {
  return { ...row, error: code === null ? null : { code, message: message ?? "" } };
}

/** Returns the open intents of a path. */
export function openIntentsAt(db: Sqlite, source: number, path: RelativePath): OpenIntent[] {
  return db
    .prepare<[number, string], OpenIntent>(
      `SELECT kind, doc_id AS docId, nullif(at_ms, 0) AS atMs, attempts, error_message AS message
       FROM intents WHERE source = ? AND path = ? ORDER BY id`,
    )
    .all(source, path);
}
