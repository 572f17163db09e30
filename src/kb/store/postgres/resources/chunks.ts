import type { Chunking } from "../../chunks.ts";
import { indexedText, joinHeadings, joinText, namesOf, type Part } from "../../rows/parts.ts";
import type { ResourceRow } from "../../rows/records.ts";
import type { Transaction } from "../database/connections.ts";
import { changeScope } from "../scopes/scopes.ts";
import {
  collectVectors,
  markStale,
  moveVectors,
  removeVectors,
  reuseVectors,
  rowsOf,
  writeVectors,
} from "../vectors/vector-writes.ts";
import { addWords, encodeWords, removeWords, type EncodedWords } from "../words/word-writes.ts";

/** Title and label: what all chunks of a resource are found by. */
type Names = Pick<ResourceRow, "title" | "label">;
/** A resource as its chunks are written. */
type ResourceRange = Pick<ResourceRow, "account_id" | "scope" | "number">;

/** Chunks that are not written yet. */
export interface NewChunks {
  readonly parts: readonly Part[];
  readonly headings: readonly string[];
  readonly words: EncodedWords;
  readonly chunking: Chunking;
}

/** Encodes the chunks of a version. Pure. */
export function encodeChunks(names: Names, parts: readonly Part[], chunking: Chunking): NewChunks {
  const headings = parts.map((_, at) => joinHeadings(chunking.spans[at] ?? { headings: [] }));
  const texts = parts.map(({ text }, at) => indexedText(namesOf(names), headings[at] ?? "", text));
  return { parts, headings, words: encodeWords(texts), chunking };
}

/** Writes chunks to rows that are reserved. */
export async function writeChunks(
  tx: Transaction,
  { account_id: accountId, scope, number }: ResourceRange,
  { parts, headings, words, chunking }: NewChunks,
  firstRow: number,
): Promise<void> {
  if (parts.length === 0) return;
  await tx.run(
    `INSERT INTO chunk (account_id, row, resource, start, line, words, headings, text, gap)
    SELECT @accountId, @firstRow::bigint + at - 1, @number, start, line, words, headings, text, gap
    FROM unnest(@starts::int[], @lines::int[], @words::int[], @headings::text[], @texts::text[], @gaps::text[])
      WITH ORDINALITY AS part (start, line, words, headings, text, gap, at)`,
    {
      accountId,
      firstRow,
      number,
      starts: parts.map(({ start }) => start),
      lines: parts.map(({ line }) => line),
      words: words.words,
      headings,
      texts: parts.map(({ text }) => text),
      gaps: parts.map(({ gap }) => gap),
    },
  );
  await addWords(tx, accountId, firstRow, words);
  const rows = { accountId, scope, first: firstRow, last: firstRow + parts.length - 1 };
  await writeVectors(tx, rows, chunking);
}

/** Replaces the chunks of a resource. Unchanged chunks keep their vectors. Returns the first row. */
export async function replaceChunks(
  tx: Transaction,
  before: ResourceRow,
  names: Names,
  made: NewChunks,
): Promise<number> {
  // Vectors depend on the title: with another title none can be reused.
  const reusable = names.title === before.title ? await collectVectors(tx, rowsOf(before)) : undefined;
  const removed = await removeChunks(tx, before);
  const { parts, words, chunking } = made;
  const firstRow = await changeScope(tx, before.scope, {
    rows: parts.length,
    chunks: parts.length - before.chunks,
    words: words.total - removed,
    refilters: true,
  });
  await writeChunks(tx, before, made, firstRow);
  if (reusable !== undefined) {
    const rows = rowsOf({ ...before, first_row: firstRow, chunks: parts.length });
    await reuseVectors(tx, reusable, rows, parts, chunking.spans);
  }
  return firstRow;
}

/**
 * Indexes the chunks of a resource under its new names. They move to new rows, because the index knows the words of a row once and for
 * all. Returns the first row.
 */
export async function renameChunks(tx: Transaction, before: ResourceRow, names: Names): Promise<number> {
  const rows = rowsOf(before);
  const texts = await tx.all<{ headings: string; text: string }>(
    "SELECT headings, text FROM chunk WHERE account_id = @accountId AND row BETWEEN @first AND @last ORDER BY row",
    { ...rows },
  );
  const words = encodeWords(texts.map(({ headings, text }) => indexedText(namesOf(names), headings, text)));
  const { accountId, first } = rows;
  const firstRow = await changeScope(tx, before.scope, { rows: before.chunks });
  await tx.run(
    `INSERT INTO chunk (account_id, row, resource, start, line, words, headings, text, gap)
    SELECT account_id, row + @by::bigint, resource, start, line, (@words::int[])[row - @first::bigint + 1], headings, text, gap
    FROM chunk WHERE account_id = @accountId AND row BETWEEN @first AND @last`,
    { ...rows, by: firstRow - first, words: words.words },
  );
  await addWords(tx, accountId, firstRow, words);
  await moveVectors(tx, rows, firstRow);
  const removed = await removeChunks(tx, before);
  await changeScope(tx, before.scope, { words: words.total - removed });
  // The label is in no vector, and chunks of this tier have none.
  if (names.title !== before.title && before.tier !== "fastest")
    await markStale(tx, rowsOf({ ...before, first_row: firstRow }), before.revision + 1);
  return firstRow;
}

/** Removes the chunks of a resource. Returns their number of words, which the scope still counts. */
export async function removeChunks(tx: Transaction, row: ResourceRow): Promise<number> {
  if (row.chunks === 0) return 0;
  const rows = rowsOf(row);
  await removeWords(tx, rows, rows.first, row.chunks);
  await removeVectors(tx, rows);
  const removed = await tx.get<{ words: number }>(
    `WITH removed AS (
      DELETE FROM chunk WHERE account_id = @accountId AND row BETWEEN @first AND @last RETURNING words)
    SELECT coalesce(sum(words), 0) AS words FROM removed`,
    { ...rows },
  );
  return removed?.words ?? 0;
}

/** Rebuilds the whole text of a resource. */
export async function readContent(
  tx: Transaction,
  row: Pick<ResourceRow, "account_id" | "scope" | "head" | "first_row" | "chunks">,
): Promise<string> {
  if (row.chunks === 0) return row.head;
  const parts = await tx.all<Omit<Part, "line">>(
    `SELECT start, text, gap FROM chunk WHERE account_id = @accountId AND row BETWEEN @first AND @last ORDER BY row`,
    { ...rowsOf(row) },
  );
  return joinText(row.head, parts);
}
