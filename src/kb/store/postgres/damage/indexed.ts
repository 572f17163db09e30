import { rowOf, type RowRange } from "../../../index/rows.ts";
import { DamagedIndex } from "../../../index/seal.ts";
import type { Part } from "../../../index/words/part.ts";
import { openRun, type RunHead } from "../../../index/words/run.ts";
import { openSegment, SEGMENT_ROWS_MAX } from "../../../index/words/segment.ts";
import type { Transaction } from "../database/connections.ts";
import type { PartsOf } from "../words/word-parts.ts";
import type { PartName } from "./rebuild.ts";

/** What the index of words has of a range of rows. */
export interface Indexed {
  /** Length in words of each chunk that was not removed, by its row. */
  readonly lengths: ReadonlyMap<number, number>;
  /** Parts that differ from what was written, with the rows that they may have. */
  readonly damaged: readonly (RowRange & PartName)[];
}

/** A part of the index; without `part`: it differs from what was written. */
interface FoundPart extends PartName {
  /** Row of its first chunk. */
  readonly first: number;
  readonly part: Part | undefined;
}

/** Runs of the scope that is checked, by number: one reaches over many steps, and takes 6 bytes of memory a chunk. */
export type RunCache = Map<number, FoundPart>;

/** Reads what the index of words has of a range of rows of a scope. */
export async function readIndexed(
  tx: Transaction,
  of: PartsOf,
  range: RowRange,
  cache: RunCache,
): Promise<Indexed> {
  const runs = await readRuns(tx, of, range, cache);
  const parts = [...runs, ...(await readSegments(tx, of, range))].toSorted((a, b) => a.first - b.first);
  const base = rowOf(of.scope, 0);
  const lengths = new Map<number, number>();
  const damaged: (RowRange & PartName)[] = [];
  for (const [at, { kind, number, first, part }] of parts.entries()) {
    if (part === undefined) {
      const last = Math.min(range.last, (parts[at + 1]?.first ?? Infinity) - 1);
      damaged.push({ kind, number, first, last });
      continue;
    }
    for (let ordinal = part.ordinalFrom(range.first - base); ordinal < part.rows; ordinal++) {
      const row = base + part.sequence(ordinal);
      if (row > range.last) break;
      lengths.set(row, part.lengths[ordinal] ?? 0);
    }
  }
  const removals = await tx.all<RowRange>(
    `SELECT first, last FROM word_removal
    WHERE account_id = @accountId AND scope = @scope AND last >= @first AND first <= @last`,
    { ...of, first: range.first - base, last: range.last - base },
  );
  for (const { first, last } of removals)
    for (let sequence = first; sequence <= last; sequence++) lengths.delete(base + sequence);
  return { lengths, damaged };
}

/** Reads the segments that may have chunks of a range. */
async function readSegments(
  tx: Transaction,
  { accountId, scope }: PartsOf,
  range: RowRange,
): Promise<FoundPart[]> {
  const base = rowOf(scope, 0);
  const rows = await tx.all<{ row: number; data: Buffer }>(
    `SELECT first_row AS row, data FROM word_segment
    WHERE account_id = @accountId AND first_row BETWEEN @first AND @last ORDER BY first_row`,
    { accountId, first: Math.max(base, range.first - SEGMENT_ROWS_MAX + 1), last: range.last },
  );
  return rows.map(({ row, data }) => ({
    kind: "segment",
    number: row,
    first: row,
    part: opened(() => openSegment(data, row - base)),
  }));
}

/** Reads the runs that have chunks of a range: those that begin in it, and the last one before. */
async function readRuns(
  tx: Transaction,
  of: PartsOf,
  range: RowRange,
  cache: RunCache,
): Promise<FoundPart[]> {
  const base = rowOf(of.scope, 0);
  const listed = await tx.all<{ number: number; first: number }>(
    `SELECT number, first FROM word_run WHERE account_id = @accountId AND scope = @scope AND first <= @last ORDER BY first`,
    { ...of, last: range.last - base },
  );
  const before = listed.findLastIndex(({ first }) => base + first <= range.first);
  const numbers = listed.slice(Math.max(0, before)).map(({ number }) => number);
  for (const number of cache.keys()) if (!numbers.includes(number)) cache.delete(number);
  const missing = numbers.filter((number) => !cache.has(number));
  if (missing.length > 0) {
    const rows = await tx.all<RunHead & { number: number; first: number }>(
      `SELECT number, first, sequences, lengths, directory, filter FROM word_run
      WHERE account_id = @accountId AND scope = @scope AND number = ANY (@missing::bigint[])`,
      { ...of, missing },
    );
    for (const row of rows)
      cache.set(row.number, {
        kind: "run",
        number: row.number,
        first: base + row.first,
        part: opened(() => openRun(row, () => [])),
      });
  }
  return numbers.flatMap((number) => cache.get(number) ?? []);
}

/** Opens a part; undefined: it is damaged. */
function opened(open: () => Part): Part | undefined {
  try {
    return open();
  } catch (error) {
    if (error instanceof DamagedIndex) return undefined;
    throw error;
  }
}
