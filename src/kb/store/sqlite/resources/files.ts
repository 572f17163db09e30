import type { Inside } from "../../methods.ts";
import type { StoredFile } from "../../files.ts";
import type { ResourceKey } from "../../resources.ts";
import type { Connection } from "../database/connection.ts";

/** Writes of uploaded files. Each runs inside a transaction of the caller. */
export type FileWrites = Pick<Inside<"free">["records"], "removeUnusedFile" | "eraseFile"> & {
  addFile(this: void, file: StoredFile): void;
};

/** True of a file that nothing uses. */
const IS_FREE = `
  NOT EXISTS (SELECT 1 FROM resource WHERE resource.file_token = stored_file.token AND is_deleted = 0)
  AND NOT EXISTS (SELECT 1 FROM job WHERE job.file_token = stored_file.token)
  AND NOT EXISTS (SELECT 1 FROM chat_image WHERE chat_image.token = stored_file.token)
  AND NOT EXISTS (SELECT 1 FROM job WHERE queue = 'chat' AND instr(job.body, stored_file.token) > 0)`;
/** True of such a file that was created and last released before the time given as a parameter. */
const UNUSED = `max(created_at, ifnull(released_at, created_at)) < ? AND ${IS_FREE}`;

/** Prepares the statements on the writing connection. */
export function prepareFileWrites(db: Connection): FileWrites {
  const insertFile = db.prepare(`
    INSERT INTO stored_file (token, account_id, name, media_type, declared_type, size_bytes, sha256, created_at)
    VALUES (@token, @accountId, @name, @mediaType, @declaredType, @sizeBytes, @sha256, @createdAt)`);
  const removeFile = db.prepare(`DELETE FROM stored_file WHERE token = ? AND ${UNUSED}`);
  const eraseFile = db.prepare(`DELETE FROM stored_file WHERE token = ? AND ${IS_FREE}`);
  const forgetUpload = db.prepare("DELETE FROM kept_answer WHERE json_extract(body, '$.file.token') = ?");
  return {
    addFile: (file) => {
      insertFile.run({ ...file, declaredType: file.declaredType ?? null });
    },
    eraseFile: (token) => {
      if (eraseFile.run(token).changes === 0) return false;
      forgetUpload.run(token);
      return true;
    },
    removeUnusedFile: (token, beforeIso) => removeFile.run(token, beforeIso).changes > 0,
  };
}

/** Prepares the statements on a connection of either kind. */
export function prepareFileReads(
  db: Connection,
): Pick<Inside<"read" | "lookup">["records"], "file" | "unusedFiles" | "filesToErase"> {
  const selectFile = db.prepare<[string], StoredFile>(`
    SELECT token, account_id AS accountId, name, media_type AS mediaType, declared_type AS declaredType,
      size_bytes AS sizeBytes, sha256, created_at AS createdAt
    FROM stored_file WHERE token = ?`);
  const selectUnused = db
    .prepare<[string, number], string>(`SELECT token FROM stored_file WHERE ${UNUSED} LIMIT ?`)
    .pluck();
  const selectToErase = db
    .prepare<[ResourceKey], string>(
      "SELECT token FROM stored_file WHERE account_id = @accountId AND released_of = @id",
    )
    .pluck();
  return {
    filesToErase: ({ accountId, id }) => selectToErase.all({ accountId, id }),
    file: (token) => selectFile.get(token),
    unusedFiles: (beforeIso, limit) => selectUnused.all(beforeIso, limit),
  };
}
