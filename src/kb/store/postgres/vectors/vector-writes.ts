import assert from "node:assert/strict";
import type { Span } from "../../chunks.ts";
import { joinHeadings, vectorKey, type Part } from "../../rows/parts.ts";
import type { ResourceRow } from "../../rows/records.ts";
import type { Transaction } from "../database/connections.ts";
import { noteRanges } from "./vector-changes.ts";

/** Consecutive rows of a scope. */
export interface Rows {
  readonly accountId: string;
  readonly scope: number;
  readonly first: number;
  readonly last: number;
}

/** The rows of a resource's chunks; empty without any. */
export function rowsOf(row: Pick<ResourceRow, "account_id" | "scope" | "first_row" | "chunks">): Rows {
  const { account_id: accountId, scope, first_row: first, chunks } = row;
  return { accountId, scope, first, last: first + chunks - 1 };
}

/** Rows that one statement writes: an HNSW index takes milliseconds for each, and no statement may exceed its limit of time. */
const SLICE_ROWS = 1000;

const WITHIN = "account_id = @accountId AND row BETWEEN @first AND @last";

function slicesOf<T>(values: readonly T[]): T[][] {
  return Array.from({ length: Math.ceil(values.length / SLICE_ROWS) }, (_, at) =>
    values.slice(at * SLICE_ROWS, (at + 1) * SLICE_ROWS),
  );
}

/** Returns the number of a model; a new one gets its number. */
export async function modelOf(tx: Transaction, fingerprint: string): Promise<number> {
  const select = "SELECT number FROM embedding_model WHERE fingerprint = @fingerprint";
  const find = () => tx.get<{ number: number }>(select, { fingerprint });
  const found = await find();
  if (found !== undefined) return found.number;
  await tx.run("INSERT INTO embedding_model (fingerprint) VALUES (@fingerprint) ON CONFLICT DO NOTHING", {
    fingerprint,
  });
  const made = await find();
  if (made === undefined) throw new TypeError("a model just written was not found");
  return made.number;
}

/** Removes the vectors of chunks, and of their sentences. */
export async function removeVectors(tx: Transaction, rows: Rows): Promise<void> {
  const removed = await tx.run(
    `WITH stale AS (DELETE FROM stale_vector WHERE ${WITHIN}), sentences AS (DELETE FROM sentence_vectors WHERE ${WITHIN})
    DELETE FROM chunk_vector WHERE ${WITHIN}`,
    { ...rows },
  );
  if (removed > 0) await noteRanges(tx, rows, [rows]);
}

/** Moves the vectors of chunks, and whether they are stale, to the rows from `toRow` on, which are behind them. */
export async function moveVectors(tx: Transaction, rows: Rows, toRow: number): Promise<void> {
  const by = toRow - rows.first;
  assert(toRow > rows.last, "vectors would move onto each other");
  const move = async (table: string): Promise<number> => {
    let moved = 0;
    for (let { first } = rows; first <= rows.last; first += SLICE_ROWS) {
      const slice = { ...rows, first, last: Math.min(rows.last, first + SLICE_ROWS - 1) };
      moved += await tx.run(`UPDATE ${table} SET row = row + @by::bigint WHERE ${WITHIN}`, { ...slice, by });
    }
    return moved;
  };
  const moved = await move("chunk_vector");
  await move("sentence_vectors");
  await move("stale_vector");
  if (moved > 0) await noteRanges(tx, rows, [rows, { first: toRow, last: rows.last + by }]);
}

/** Marks the vectors of chunks as of an older title, also those that are being made. `revision` has the new title. */
export async function markStale(tx: Transaction, rows: Rows, revision: number): Promise<void> {
  await tx.run(
    `INSERT INTO stale_vector (account_id, row, revision)
    SELECT @accountId, row, @revision FROM chunk WHERE ${WITHIN}
    ON CONFLICT (account_id, row) DO UPDATE SET revision = excluded.revision`,
    { ...rows, revision },
  );
}

/** Vectors of the chunks of a version that is replaced, by the text that they were embedded from. */
export type ReusableVectors = ReadonlyMap<string, readonly ReusableVector[]>;

interface ReusableVector {
  readonly model: number;
  readonly value: Buffer;
  readonly sentences: Buffer | null;
}

/** Collects the vectors of chunks, except those of an older title. */
export async function collectVectors(tx: Transaction, rows: Rows): Promise<ReusableVectors> {
  const found = await tx.all<ReusableVector & { headings: string; text: string }>(
    `SELECT headings, text, chunk_vector.model, value, sentence_vectors.vectors AS sentences
    FROM chunk JOIN chunk_vector USING (account_id, row)
      LEFT JOIN sentence_vectors ON sentence_vectors.account_id = chunk.account_id
        AND sentence_vectors.row = chunk.row AND sentence_vectors.model = chunk_vector.model
    WHERE chunk.account_id = @accountId AND chunk.row BETWEEN @first AND @last
      AND NOT EXISTS (SELECT 1 FROM stale_vector WHERE account_id = @accountId AND stale_vector.row = chunk.row)`,
    { ...rows },
  );
  const reusable = new Map<string, ReusableVector[]>();
  for (const { headings, text, ...vector } of found) {
    const key = vectorKey(headings, text);
    const before = reusable.get(key) ?? [];
    // Equal chunks have equal vectors.
    if (!before.some(({ model }) => model === vector.model)) reusable.set(key, [...before, vector]);
  }
  return reusable;
}

/** Copies collected vectors to equal chunks of the next version that have none yet. */
export async function reuseVectors(
  tx: Transaction,
  reusable: ReusableVectors,
  rows: Rows,
  parts: readonly Part[],
  spans: readonly Span[],
): Promise<void> {
  const { accountId, first } = rows;
  const copies = parts.flatMap(({ text }, at) => {
    const found = reusable.get(vectorKey(joinHeadings(spans[at] ?? { headings: [] }), text)) ?? [];
    // Copied, because several chunks may be equal.
    return found.map((vector) => Object.assign({ row: first + at }, vector));
  });
  if (copies.length === 0) return;
  for (const slice of slicesOf(copies))
    await tx.run(
      `WITH copy AS (
        SELECT * FROM unnest(@rows::bigint[], @models::int[], @values::bytea[], @sentences::bytea[])
          AS copy (row, model, value, sentences)),
      added AS (
        INSERT INTO chunk_vector (account_id, row, model, value) SELECT @accountId, row, model, value FROM copy
        ON CONFLICT (account_id, row, model) DO NOTHING)
      INSERT INTO sentence_vectors (account_id, row, model, vectors)
      SELECT @accountId, row, model, sentences FROM copy WHERE sentences IS NOT NULL
      ON CONFLICT (account_id, row) DO NOTHING`,
      {
        accountId,
        rows: slice.map(({ row }) => row),
        models: slice.map(({ model }) => model),
        values: slice.map(({ value }) => value),
        sentences: slice.map(({ sentences }) => sentences),
      },
    );
  await noteRanges(tx, rows, [rows]);
}
