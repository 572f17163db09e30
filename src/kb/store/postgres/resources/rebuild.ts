import { setTimeout as sleep } from "node:timers/promises";
import { rowOf } from "../../../index/rows.ts";
import { isSealed } from "../../../index/seal.ts";
import { pagesListed, type RunHead } from "../../../index/words/run.ts";
import type { Transaction } from "../database/connections.ts";
import type { Database } from "../database/database.ts";
import { renameChunks } from "./chunks.ts";
import { readLocked } from "./rows.ts";
import { lockMerges } from "../words/merges.ts";
import type { PartsOf } from "../words/word-parts.ts";

/** A part of the index of words, by its kind and the number of the run or the first row of the segment. */
interface PartName {
  readonly kind: "segment" | "run";
  readonly number: number;
}

/** Chunks whose documents one transaction indexes anew: others who write to the scope wait for it. */
const CHUNKS = 500;
/** How often a rebuild tries again while another process merges the scope. */
const BUSY_PAUSE_MS = 500;

/**
 * Rebuilds the parts of an account's index of words that differ from what was written: indexes their documents anew from the stored
 * texts, a few in each transaction, then drops the part. Until then, searches of the owner fail. A repetition after a crash goes on.
 */
export async function rebuildDamaged(
  database: Pick<Database, "run">,
  accountId: string,
  signal: AbortSignal,
): Promise<void> {
  const parts = await database.run("snapshot", accountId, (tx) => partsOf(tx, accountId));
  for (const { scope, ...part } of parts) {
    const of = { accountId, scope };
    if (signal.aborted) return;
    if (await database.run("snapshot", accountId, (tx) => isSound(tx, of, part))) continue;
    for (let outcome = "busy"; outcome !== "done" && !signal.aborted;) {
      outcome = await database.run("write", accountId, (tx) => rebuildStep(tx, of, part));
      if (outcome === "busy") await sleep(BUSY_PAUSE_MS, undefined, { signal }).catch(() => undefined);
    }
  }
}

function partsOf(tx: Transaction, accountId: string): Promise<(PartName & { readonly scope: number })[]> {
  return tx.all(
    `SELECT 'segment' AS kind, first_row AS number, first_row >> 32 AS scope FROM word_segment WHERE account_id = @accountId
    UNION ALL SELECT 'run', number, scope FROM word_run WHERE account_id = @accountId`,
    { accountId },
  );
}

/** Moves some documents out of a damaged part, or drops the part if it has no more. */
async function rebuildStep(tx: Transaction, of: PartsOf, part: PartName): Promise<"done" | "more" | "busy"> {
  const { accountId, scope } = of;
  if (!(await lockMerges(tx, scope))) return "busy";
  await tx.run("SELECT 1 FROM scope WHERE number = @scope FOR UPDATE", { scope });
  const range = await rangeOf(tx, of, part);
  // A merge has taken its place.
  if (range === undefined) return "done";
  const rows = await tx.all<{ readonly id: string }>(
    `SELECT id FROM chunk JOIN resource ON resource.account_id = chunk.account_id AND number = resource
    WHERE chunk.account_id = @accountId AND row BETWEEN @first AND @last AND NOT is_deleted ORDER BY row LIMIT ${CHUNKS}`,
    { accountId, ...range },
  );
  if (rows.length === 0) {
    await drop(tx, of, part);
    return "done";
  }
  for (const id of new Set(rows.map((row) => row.id))) await indexAgain(tx, accountId, id);
  return "more";
}

/** The rows that a part may have: up to the first one of the next part. Undefined: there is no such part. */
async function rangeOf(
  tx: Transaction,
  { accountId, scope }: PartsOf,
  part: PartName,
): Promise<{ readonly first: number; readonly last: number } | undefined> {
  const [base, end] = [rowOf(scope, 0), rowOf(scope + 1, 0)];
  const starts = await tx.all<PartName & { readonly first: number }>(
    `SELECT 'segment' AS kind, first_row AS number, first_row AS first FROM word_segment
      WHERE account_id = @accountId AND first_row >= @base::bigint AND first_row < @end::bigint
    UNION ALL SELECT 'run', number, @base::bigint + first FROM word_run WHERE account_id = @accountId AND scope = @scope
    ORDER BY first`,
    { accountId, scope, base, end },
  );
  const at = starts.findIndex(({ kind, number }) => kind === part.kind && number === part.number);
  const first = starts[at]?.first;
  return first === undefined ? undefined : { first, last: (starts[at + 1]?.first ?? end) - 1 };
}

/** Indexes the chunks of a document anew, under the names that it has. They move to new rows, as in every change of its title. */
async function indexAgain(tx: Transaction, accountId: string, id: string): Promise<void> {
  const row = await readLocked(tx, { accountId, id });
  if (row === undefined || row.chunks === 0) return;
  const firstRow = await renameChunks(tx, row, row);
  await tx.run(
    "UPDATE resource SET first_row = @firstRow WHERE account_id = @accountId AND number = @number",
    { firstRow, accountId, number: row.number },
  );
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
    return segment === undefined || isSealed(segment.data);
  }
  const head = await tx.get<RunHead>(
    `SELECT sequences, lengths, directory, filter FROM word_run
    WHERE account_id = @accountId AND scope = @scope AND number = @number`,
    { accountId, scope, number },
  );
  if (head === undefined) return true;
  if (!Object.values(head).every(isSealed)) return false;
  const pages = pagesListed(head.directory.length);
  for (let page = 0; page < pages; page++) {
    const found = await tx.get<{ readonly data: Buffer }>(
      "SELECT data FROM word_page WHERE account_id = @accountId AND run = @number AND page = @page::int",
      { accountId, number, page },
    );
    if (found === undefined || !isSealed(found.data)) return false;
  }
  return true;
}

async function drop(
  tx: Transaction,
  { accountId, scope }: PartsOf,
  { kind, number }: PartName,
): Promise<void> {
  const tables =
    kind === "segment"
      ? ["word_segment WHERE first_row = @number"]
      : ["word_run WHERE number = @number", "word_page WHERE run = @number"];
  for (const from of tables)
    await tx.run(`DELETE FROM ${from} AND account_id = @accountId`, { accountId, number });
  await tx.run(
    "UPDATE scope SET merged = merged + 1, segments = segments - @segments::int WHERE number = @scope",
    { scope, segments: Number(kind === "segment") },
  );
}
