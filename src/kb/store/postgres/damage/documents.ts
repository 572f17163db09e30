import type { Transaction } from "../database/connections.ts";
import { damageIn, type Checked, type CheckedScope } from "./scope.ts";

/**
 * Checks that the documents of a scope after a number have their chunks and the records of their files. Up to `limit` documents, which
 * have fewer chunks than that without the last of them.
 */
export async function checkDocuments(
  tx: Transaction,
  of: CheckedScope,
  after: number,
  limit: number,
): Promise<Checked> {
  const { accountId, scope } = of;
  const listed = await tx.all<{ number: number; chunks: number }>(
    `SELECT number, chunks FROM resource
    WHERE account_id = @accountId AND scope = @scope AND NOT is_deleted AND number > @after ORDER BY number LIMIT @limit`,
    { accountId, scope, after, limit },
  );
  let chunks = 0;
  const end = listed.findIndex((document) => (chunks += document.chunks) >= limit);
  const numbers = listed.slice(0, end < 0 ? listed.length : end + 1).map(({ number }) => number);
  const wrong = await tx.all<{ id: string; lacksChunks: boolean; lacksFile: boolean }>(
    `SELECT * FROM (
      SELECT id, file_token IS NOT NULL AND token IS NULL AS "lacksFile", resource.chunks <> (
          SELECT count(*) FROM chunk WHERE account_id = @accountId AND chunk.resource = resource.number
            AND row BETWEEN first_row AND first_row + resource.chunks - 1) AS "lacksChunks"
      FROM resource LEFT JOIN stored_file ON token = file_token
      WHERE resource.account_id = @accountId AND resource.number = ANY (@numbers::bigint[])) AS document
    WHERE "lacksChunks" OR "lacksFile"`,
    { accountId, numbers },
  );
  return {
    damage: [
      ...wrong.flatMap(({ id, lacksChunks }) =>
        lacksChunks ? damageIn(of, "missingChunks", `document ${id}`) : [],
      ),
      ...wrong.flatMap(({ id, lacksFile }) =>
        lacksFile ? damageIn(of, "unknownFiles", `document ${id}`) : [],
      ),
    ],
    next: numbers.length < listed.length || listed.length === limit ? numbers.at(-1) : undefined,
  };
}
