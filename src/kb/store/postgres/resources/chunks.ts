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
} from "../vectors/vector-writes.ts";
import { addWords, encodeWords, removeWords, type EncodedWords } from "../words/word-writes.ts";

/** Title and label: what all chunks of a resource are found by. */
type Names = Pick<ResourceRow, "title" | "label">;

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

/** Chunks with the rows that are reserved for them, which lie in the scope of their resource. */
export interface PlacedChunks extends NewChunks {
  readonly scope: number;
  /** Number of the resource. */
  readonly resource: number;
  readonly firstRow: number;
}

/** Writes the chunks of several resources of an account, whose rows are reserved and whose words and segments are counted. */
export async function writeChunks(
  tx: Transaction,
  accountId: string,
  documents: readonly PlacedChunks[],
): Promise<void> {
  const filled = documents.filter(({ parts }) => parts.length > 0);
  if (filled.length === 0) return;
  const chunks = filled.flatMap(({ parts, headings, words, resource, firstRow }) =>
    parts.map((part, at) =>
      Object.assign({ row: firstRow + at, resource, words: words.words[at], headings: headings[at] }, part),
    ),
  );
  await Promise.all([
    tx.run(
      `INSERT INTO chunk (account_id, row, resource, start, line, words, headings, text, gap)
      SELECT @accountId, row, resource, start, line, words, headings, text, gap
      FROM unnest(@rows::bigint[], @resources::bigint[], @starts::int[], @lines::int[], @words::int[], @headings::text[],
        @texts::text[], @gaps::text[]) AS part (row, resource, start, line, words, headings, text, gap)`,
      {
        accountId,
        rows: chunks.map(({ row }) => row),
        resources: chunks.map(({ resource }) => resource),
        starts: chunks.map(({ start }) => start),
        lines: chunks.map(({ line }) => line),
        words: chunks.map(({ words }) => words),
        headings: chunks.map(({ headings }) => headings),
        texts: chunks.map(({ text }) => text),
        gaps: chunks.map(({ gap }) => gap),
      },
    ),
    addWords(tx, accountId, filled),
  ]);
}

/** Replaces the chunks of a resource. Unchanged chunks keep their vectors. Returns the first row. */
export async function replaceChunks(
  tx: Transaction,
  before: ResourceRow,
  names: Names,
  made: NewChunks,
): Promise<number> {
  // Vectors depend on the title: with another title none can be reused.
  const isReusable = names.title === before.title && before.chunks > 0;
  const [reusable, removed] = await Promise.all([
    isReusable ? collectVectors(tx, rowsOf(before)) : undefined,
    removeChunks(tx, before),
  ]);
  const { parts, words, chunking } = made;
  const firstRow = await changeScope(tx, before.scope, {
    rows: parts.length,
    chunks: parts.length - before.chunks,
    words: words.total - removed,
    segments: words.segments.length,
    removed: before.chunks,
    refilters: true,
  });
  const { account_id: accountId, scope, number: resource } = before;
  await writeChunks(tx, accountId, [{ ...made, scope, resource, firstRow }]);
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
  const firstRow = await changeScope(tx, before.scope, {
    rows: before.chunks,
    segments: words.segments.length,
    removed: before.chunks,
  });
  await tx.run(
    `INSERT INTO chunk (account_id, row, resource, start, line, words, headings, text, gap)
    SELECT account_id, row + @by::bigint, resource, start, line, (@words::int[])[row - @first::bigint + 1], headings, text, gap
    FROM chunk WHERE account_id = @accountId AND row BETWEEN @first AND @last`,
    { ...rows, by: firstRow - first, words: words.words },
  );
  await addWords(tx, accountId, [{ firstRow, words }]);
  await moveVectors(tx, rows, firstRow);
  const removed = await removeChunks(tx, before);
  await changeScope(tx, before.scope, { words: words.total - removed });
  // The label is in no vector, and chunks of this tier have none.
  if (names.title !== before.title && before.tier !== "fastest")
    await markStale(tx, rowsOf({ ...before, first_row: firstRow }), before.revision + 1);
  return firstRow;
}

/** Removes the chunks of a resource. Returns their number of words. The caller changes the counts of the scope. */
export async function removeChunks(tx: Transaction, row: ResourceRow): Promise<number> {
  if (row.chunks === 0) return 0;
  const rows = rowsOf(row);
  const [removed] = await Promise.all([
    tx.get<{ words: number }>(
      `WITH removed AS (
        DELETE FROM chunk WHERE account_id = @accountId AND row BETWEEN @first AND @last RETURNING words)
      SELECT coalesce(sum(words), 0) AS words FROM removed`,
      { ...rows },
    ),
    removeWords(tx, rows, rows.first, row.chunks),
    removeVectors(tx, rows),
  ]);
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
