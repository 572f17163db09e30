import { rowOf } from "../../../index/rows.ts";
import { isSealed } from "../../../index/seal.ts";
import { pagesListed, type RunHead } from "../../../index/words/run.ts";
import type { Transaction } from "../database/connections.ts";
import { renameChunks } from "../resources/chunks.ts";
import { readLocked } from "../resources/rows.ts";
import type { PartsOf } from "../words/word-parts.ts";
import { lockMerges } from "../words/merges.ts";

/** A part of the index of words, by its kind and the number of the run or the first row of the segment. */
export interface PartName {
  readonly kind: "segment" | "run";
  readonly number: number;
}

/** Most chunks of the documents that are indexed anew in one transaction: others who write to the scope wait for it. */
const CHUNKS_MAX = 5000;

/** Indexes the chunks of a document anew, under the names that it has. They move to new rows, as in every change of its title. */
export async function indexAgain(tx: Transaction, accountId: string, id: string): Promise<void> {
  const row = await readLocked(tx, { accountId, id });
  if (row === undefined || row.chunks === 0) return;
  const firstRow = await renameChunks(tx, row, row);
  await tx.run(
    "UPDATE resource SET first_row = @firstRow WHERE account_id = @accountId AND number = @number",
    { firstRow, accountId, number: row.number },
  );
}

/**
 * Drops a part that differs from what was written, and indexes the documents that it had anew, in one transaction: searches fail before it
 * and find everything after it. Returns false, and changes nothing, if the part has too many chunks, or is sound or gone by now.
 */
export async function rebuildPart(
  tx: Transaction,
  of: PartsOf,
  part: PartName,
  chunksMax = CHUNKS_MAX,
): Promise<boolean> {
  const { accountId, scope } = of;
  if (!(await lockMerges(tx, scope))) return false;
  await tx.run("SELECT 1 FROM scope WHERE number = @scope FOR UPDATE", { scope });
  const base = rowOf(scope, 0);
  const starts = await tx.all<PartName & { readonly first: number }>(
    `SELECT 'segment' AS kind, first_row AS number, first_row AS first FROM word_segment
      WHERE account_id = @accountId AND first_row BETWEEN @base::bigint AND @last::bigint
    UNION ALL SELECT 'run', number, @base::bigint + first FROM word_run WHERE account_id = @accountId AND scope = @scope
    ORDER BY first`,
    { accountId, scope, base, last: rowOf(scope + 1, 0) - 1 },
  );
  const at = starts.findIndex(({ kind, number }) => kind === part.kind && number === part.number);
  const first = starts[at]?.first;
  if (first === undefined) return false;
  const ids = await tx.all<{ readonly id: string; readonly chunks: number }>(
    `SELECT id, chunks FROM resource WHERE account_id = @accountId AND NOT is_deleted AND number IN (
      SELECT resource FROM (
        SELECT resource FROM chunk WHERE account_id = @accountId AND row BETWEEN @first AND @last LIMIT @limit) AS found)`,
    { accountId, limit: chunksMax + 1, first, last: (starts[at + 1]?.first ?? rowOf(scope + 1, 0)) - 1 },
  );
  if (ids.reduce((sum, { chunks }) => sum + chunks, 0) > chunksMax || (await isSound(tx, of, part)))
    return false;
  await drop(tx, of, part);
  for (const { id } of ids) await indexAgain(tx, accountId, id);
  return true;
}

/** Reports whether a part is as it was written. */
async function isSound(
  tx: Transaction,
  { accountId, scope }: PartsOf,
  { kind, number }: PartName,
): Promise<boolean> {
  if (kind === "segment") {
    const segment = await tx.get<{ readonly data: Buffer }>(
      "SELECT data FROM word_segment WHERE account_id = @accountId AND first_row = @number",
      { accountId, number },
    );
    return segment !== undefined && isSealed(segment.data);
  }
  const head = await tx.get<RunHead>(
    `SELECT sequences, lengths, directory, filter FROM word_run
    WHERE account_id = @accountId AND scope = @scope AND number = @number`,
    { accountId, scope, number },
  );
  const pages = await tx.all<{ readonly data: Buffer }>(
    "SELECT data FROM word_page WHERE account_id = @accountId AND run = @number",
    { accountId, number },
  );
  return (
    head !== undefined &&
    Object.values(head).every(isSealed) &&
    pages.length === pagesListed(head.directory.length) &&
    pages.every(({ data }) => isSealed(data))
  );
}

async function drop(
  tx: Transaction,
  { accountId, scope }: PartsOf,
  { kind, number }: PartName,
): Promise<void> {
  if (kind === "segment") {
    await tx.run("DELETE FROM word_segment WHERE account_id = @accountId AND first_row = @number", {
      accountId,
      number,
    });
  } else {
    await tx.run(
      "DELETE FROM word_run WHERE account_id = @accountId AND scope = @scope AND number = @number",
      {
        accountId,
        scope,
        number,
      },
    );
    await tx.run("DELETE FROM word_page WHERE account_id = @accountId AND run = @number", {
      accountId,
      number,
    });
  }
  await tx.run(
    "UPDATE scope SET merged = merged + 1, segments = segments - @segments::int WHERE number = @scope",
    { scope, segments: Number(kind === "segment") },
  );
}
