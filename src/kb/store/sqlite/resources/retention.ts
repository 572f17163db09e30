import type { Inside } from "../../methods.ts";
import type { Connection } from "../database/connection.ts";

/** Removal of expired records. Each write runs inside a transaction of the caller. */
export type RetentionWrites = Pick<Inside<"free">["records"], "purgeDeleted" | "removeUnusedFile">;

/** True of a file that nothing uses, and that was created and last released before the time given as a parameter. */
const UNUSED = `
  max(created_at, ifnull(released_at, created_at)) < ?
  AND NOT EXISTS (SELECT 1 FROM resource WHERE resource.file_token = stored_file.token AND is_deleted = 0)
  AND NOT EXISTS (SELECT 1 FROM job WHERE job.file_token = stored_file.token)
  AND NOT EXISTS (SELECT 1 FROM chat_image WHERE chat_image.token = stored_file.token)
  AND NOT EXISTS (SELECT 1 FROM job WHERE queue = 'chat' AND instr(job.body, stored_file.token) > 0)`;

/** Prepares the statements on the writing connection. */
export function prepareRetentionWrites(db: Connection): RetentionWrites {
  // The delete is the last change of a record, so `updated_at` is its time.
  const purge = db.prepare(`
    DELETE FROM resource WHERE number IN (
      SELECT number FROM resource WHERE is_deleted = 1 AND updated_at < ? LIMIT ?)`);
  const removeFile = db.prepare(`DELETE FROM stored_file WHERE token = ? AND ${UNUSED}`);
  return {
    purgeDeleted: (beforeIso, limit) => purge.run(beforeIso, limit).changes,
    removeUnusedFile: (token, beforeIso) => removeFile.run(token, beforeIso).changes > 0,
  };
}

/** Prepares the search for unused files, on a connection of either kind. */
export function prepareUnusedFiles(db: Connection): Inside<"read">["records"]["unusedFiles"] {
  const select = db
    .prepare<[string, number], string>(`SELECT token FROM stored_file WHERE ${UNUSED} LIMIT ?`)
    .pluck();
  return (beforeIso, limit) => select.all(beforeIso, limit);
}
