import type { Inside } from "../../methods.ts";
import type { StoredFile } from "../../records.ts";
import type { Connection } from "../database/connection.ts";

/** Writes of uploaded files. Each runs inside a transaction of the caller. */
export type FileWrites = Pick<Inside<"free">["records"], "removeUnusedFile"> & {
  addFile(this: void, file: StoredFile): void;
};

/** True of a file that nothing uses, and that was created and last released before the time given as a parameter. */
const UNUSED = `
  max(created_at, ifnull(released_at, created_at)) < ?
  AND NOT EXISTS (SELECT 1 FROM resource WHERE resource.file_token = stored_file.token AND is_deleted = 0)
  AND NOT EXISTS (SELECT 1 FROM job WHERE job.file_token = stored_file.token)
  AND NOT EXISTS (SELECT 1 FROM chat_image WHERE chat_image.token = stored_file.token)
  AND NOT EXISTS (SELECT 1 FROM job WHERE queue = 'chat' AND instr(job.body, stored_file.token) > 0)`;

/** Prepares the statements on the writing connection. */
export function prepareFileWrites(db: Connection): FileWrites {
  const insertFile = db.prepare(`
    INSERT INTO stored_file (token, account_id, name, media_type, declared_type, size_bytes, sha256, created_at)
    VALUES (@token, @accountId, @name, @mediaType, @declaredType, @sizeBytes, @sha256, @createdAt)`);
  const removeFile = db.prepare(`DELETE FROM stored_file WHERE token = ? AND ${UNUSED}`);
  return {
    addFile: (file) => {
      insertFile.run({ ...file, declaredType: file.declaredType ?? null });
    },
    removeUnusedFile: (token, beforeIso) => removeFile.run(token, beforeIso).changes > 0,
  };
}

/** Prepares the statements on a connection of either kind. */
export function prepareFileReads(
  db: Connection,
): Pick<Inside<"read" | "lookup">["records"], "file" | "unusedFiles"> {
  const selectFile = db.prepare<[string], StoredFile>(`
    SELECT token, account_id AS accountId, name, media_type AS mediaType, declared_type AS declaredType,
      size_bytes AS sizeBytes, sha256, created_at AS createdAt
    FROM stored_file WHERE token = ?`);
  const selectUnused = db
    .prepare<[string, number], string>(`SELECT token FROM stored_file WHERE ${UNUSED} LIMIT ?`)
    .pluck();
  return {
    file: (token) => selectFile.get(token),
    unusedFiles: (beforeIso, limit) => selectUnused.all(beforeIso, limit),
  };
}
