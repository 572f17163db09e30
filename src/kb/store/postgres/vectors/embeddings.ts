import { quantize } from "../../../index/quantized.ts";
import { rowsOfScope, scopeOfRow } from "../../../index/rows.ts";
import { packSentences } from "../../../index/sentence-codes.ts";
import type { ChunkSentences, ChunkVector, Index } from "../../search-index.ts";
import type { Transaction } from "../database/connections.ts";
import { noteRanges, rangesOf, type ScopeOf } from "./vector-changes.ts";
import { modelOf } from "./vector-writes.ts";

/** Writes of the vectors of chunks of any scope. */
export function embeddingWritesOn(tx: Transaction): Pick<Index, "putVectors" | "putSentences"> {
  return {
    async putVectors(fingerprint, vectors) {
      if (vectors.length === 0) return;
      const model = await modelOf(tx, fingerprint);
      // The last one of a chunk counts.
      const unique = new Map(vectors.map((vector) => [vector.ref, vector]));
      for (const of of await lockScopes(tx, [...unique.keys()])) {
        const { first, last } = rowsOfScope(of.scope);
        const own = [...unique.values()].filter(({ ref }) => ref >= first && ref <= last);
        const rows = await insertVectors(tx, of, model, own);
        if (rows.length === 0) continue;
        const written = new Set(rows);
        await freshen(
          tx,
          of,
          model,
          own.filter(({ ref }) => written.has(ref)),
        );
        await noteRanges(tx, of, rangesOf(rows.toSorted((a, b) => a - b)), model);
      }
    },
    async putSentences(fingerprint, chunks) {
      if (chunks.length === 0) return;
      const model = await modelOf(tx, fingerprint);
      const unique = new Map(chunks.map((chunk) => [chunk.ref, chunk]));
      for (const of of await lockScopes(tx, [...unique.keys()])) {
        const { first, last } = rowsOfScope(of.scope);
        await insertSentences(
          tx,
          of,
          model,
          [...unique.values()].filter(({ ref }) => ref >= first && ref <= last),
        );
      }
    },
  };
}

/** Locks the scopes of rows, in the order of their numbers. */
async function lockScopes(tx: Transaction, rows: readonly number[]): Promise<ScopeOf[]> {
  const scopes = [...new Set(rows.map(scopeOfRow))];
  return tx.all<ScopeOf>(
    `SELECT scope.number AS scope, collection.account_id AS "accountId"
    FROM scope JOIN collection ON collection.id = collection_id WHERE scope.number = ANY (@scopes::bigint[])
    ORDER BY scope.number FOR UPDATE OF scope`,
    { scopes },
  );
}

/** Inserts vectors of one scope, as `putVectors` promises. Returns the rows that got one. */
async function insertVectors(
  tx: Transaction,
  { accountId }: ScopeOf,
  model: number,
  vectors: readonly ChunkVector[],
): Promise<number[]> {
  const values = vectors.map(({ vector }) => quantize(vector));
  // In one value for all: an array of them would be sent as text.
  const lengths = values.map(({ length }) => length);
  let end = 1;
  const inserted = await tx.all<{ readonly row: number }>(
    `INSERT INTO chunk_vector (account_id, row, model, value)
    SELECT @accountId, new.row, @model, substring(@values::bytea FROM new.start FOR new.length)
    FROM unnest(@rows::bigint[], @since::bigint[], @starts::integer[], @lengths::integer[]) AS new (row, since, start, length)
    WHERE EXISTS (SELECT 1 FROM chunk WHERE chunk.account_id = @accountId AND chunk.row = new.row)
      AND NOT EXISTS (SELECT 1 FROM stale_vector AS stale WHERE stale.account_id = @accountId AND stale.row = new.row
        AND stale.revision IS DISTINCT FROM new.since)
    ON CONFLICT (account_id, row, model) DO UPDATE SET value = excluded.value
    RETURNING row`,
    {
      accountId,
      model,
      values: Buffer.concat(values),
      rows: vectors.map(({ ref }) => ref),
      since: vectors.map(({ staleSince }) => staleSince ?? null),
      starts: lengths.map((length) => (end += length) - length),
      lengths,
    },
  );
  return inserted.map(({ row }) => row);
}

/** Ends the staleness of chunks, which got vectors of the new title. Vectors of other models, which are of the old one, go. */
async function freshen(
  tx: Transaction,
  { accountId }: ScopeOf,
  model: number,
  vectors: readonly ChunkVector[],
): Promise<void> {
  const stale = vectors.filter(({ staleSince }) => staleSince !== undefined);
  if (stale.length === 0) return;
  await tx.run(
    `WITH fresh AS (
      DELETE FROM stale_vector USING unnest(@rows::bigint[], @since::bigint[]) AS new (row, since)
      WHERE account_id = @accountId AND stale_vector.row = new.row AND revision = new.since RETURNING stale_vector.row)
    DELETE FROM chunk_vector USING fresh WHERE account_id = @accountId AND chunk_vector.row = fresh.row AND model <> @model`,
    {
      accountId,
      model,
      rows: stale.map(({ ref }) => ref),
      since: stale.map(({ staleSince }) => staleSince ?? null),
    },
  );
}

async function insertSentences(
  tx: Transaction,
  { accountId }: ScopeOf,
  model: number,
  chunks: readonly ChunkSentences[],
): Promise<void> {
  if (chunks.length === 0) return;
  const values = chunks.map(({ vectors }) => packSentences(vectors));
  const lengths = values.map(({ length }) => length);
  let end = 1;
  await tx.run(
    `INSERT INTO sentence_vectors (account_id, row, model, vectors)
    SELECT @accountId, new.row, @model, substring(@values::bytea FROM new.start FOR new.length)
    FROM unnest(@rows::bigint[], @starts::integer[], @lengths::integer[]) AS new (row, start, length)
    WHERE EXISTS (SELECT 1 FROM chunk WHERE chunk.account_id = @accountId AND chunk.row = new.row)
    ON CONFLICT (account_id, row) DO UPDATE SET model = excluded.model, vectors = excluded.vectors`,
    {
      accountId,
      model,
      values: Buffer.concat(values),
      rows: chunks.map(({ ref }) => ref),
      starts: lengths.map((length) => (end += length) - length),
      lengths,
    },
  );
}
