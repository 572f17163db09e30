import type { FileFacts, OpenIntent } from "../../../wire/daemon-files.ts";
import type { RelativePath } from "../../plan/model.ts";
import type { Sqlite } from "../database/open.ts";

/** Reads everything about one path, for a person. Prepares its statements on use. */
export interface FileFactsReader {
  /** Returns the rows of a path, held ones last: a path may have several of them. */
  rows(source: number, path: RelativePath): FileFacts[];
  /** Returns the open intents of a path. */
  intents(source: number, path: RelativePath): OpenIntent[];
}

type FactsRow = Omit<FileFacts, "error" | "isOwnForm"> & {
  readonly code: string | null;
  readonly message: string | null;
  readonly isOwnForm: 0 | 1;
};

/** Opens the reader. */
export function openFileFacts(db: Sqlite): FileFactsReader {
  return {
    rows: (source, path) =>
      db
        .prepare<[number, string], FactsRow>(
          `SELECT id, doc_id AS docId, state, size_bytes AS sizeBytes, mtime_ms AS mtimeMs, ctime_ms AS ctimeMs, hash,
             title, file_url AS fileUrl, error_code AS code, error_message AS message, tries, warning,
             found_digest IS NOT NULL AND found_digest <> digest AS isOwnForm,
             retry_at_ms AS retryAtMs
           FROM files WHERE source = ? AND path = ? ORDER BY state IN ('held', 'doomed'), id`,
        )
        .all(source, path)
        .map(factsOf),
    intents: (source, path) =>
      db
        .prepare<[number, string], OpenIntent>(
          `SELECT kind, doc_id AS docId, nullif(at_ms, 0) AS atMs, attempts, error_message AS message
           FROM intents WHERE source = ? AND path = ? ORDER BY id`,
        )
        .all(source, path),
  };
}

function factsOf({ code, message, isOwnForm, ...row }: FactsRow): FileFacts {
  return {
    ...row,
    isOwnForm: isOwnForm === 1,
    error: code === null ? null : { code, message: message ?? "" },
  };
}
