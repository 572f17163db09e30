import type { StoredFile } from "../../files.ts";
import type { Records } from "../../records.ts";
import type { Transaction } from "../database/connections.ts";

/** True of a file that nothing uses. */
const IS_FREE = `
  NOT EXISTS (SELECT 1 FROM resource WHERE resource.file_token = stored_file.token AND NOT is_deleted)
  AND NOT EXISTS (SELECT 1 FROM job WHERE job.file_token = stored_file.token)
  AND NOT EXISTS (SELECT 1 FROM chat_image WHERE chat_image.token = stored_file.token)
  AND NOT EXISTS (SELECT 1 FROM job WHERE queue = 'chat' AND strpos(job.body, stored_file.token) > 0)`;
/** True of such a file that was created and last released before `@beforeIso`. */
const UNUSED = `greatest(created_at, coalesce(released_at, created_at)) < @beforeIso AND ${IS_FREE}`;

/** Uploaded files inside a transaction. */
export function filesOn(
  tx: Transaction,
): Pick<Records, "file" | "unusedFiles" | "filesToErase" | "removeUnusedFile" | "eraseFile"> {
  return {
    file: (token) =>
      tx.get<StoredFile>(
        `SELECT token, account_id AS "accountId", name, media_type AS "mediaType", declared_type AS "declaredType",
          size_bytes AS "sizeBytes", sha256, created_at AS "createdAt"
        FROM stored_file WHERE token = @token`,
        { token },
      ),
    unusedFiles: async (beforeIso, limit) =>
      tokensOf(
        await tx.all<TokenRow>(`SELECT token FROM stored_file WHERE ${UNUSED} ORDER BY token LIMIT @limit`, {
          beforeIso,
          limit,
        }),
      ),
    filesToErase: async ({ accountId, id }) =>
      tokensOf(
        await tx.all<TokenRow>(
          "SELECT token FROM stored_file WHERE account_id = @accountId AND released_of = @id",
          { accountId, id },
        ),
      ),
    removeUnusedFile: async (token, beforeIso) =>
      (await tx.run(`DELETE FROM stored_file WHERE token = @token AND ${UNUSED}`, { token, beforeIso })) > 0,
    async eraseFile(token) {
      if ((await tx.run(`DELETE FROM stored_file WHERE token = @token AND ${IS_FREE}`, { token })) === 0)
        return false;
      await tx.run("DELETE FROM kept_answer WHERE about = @token", { token });
      return true;
    },
  };
}

interface TokenRow {
  readonly token: string;
}

function tokensOf(rows: readonly TokenRow[]): string[] {
  return rows.map(({ token }) => token);
}

/** Records an uploaded file. */
export async function insertFile(tx: Transaction, file: StoredFile): Promise<void> {
  await tx.run(
    `INSERT INTO stored_file (token, account_id, name, media_type, declared_type, size_bytes, sha256, created_at)
    VALUES (@token, @accountId, @name, @mediaType, @declaredType, @sizeBytes, @sha256, @createdAt)`,
    { ...file },
  );
}
