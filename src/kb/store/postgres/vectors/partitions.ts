import { makeCodeList, type CodeList } from "../../../index/codes.ts";
import { rowOf, rowsOfScope, type RowRange } from "../../../index/rows.ts";
import { evict, MEAN_GROWTH_MAX, mergedRanges, STORED_BYTES_MAX } from "../../search/code-cache.ts";
import {
  MEAN_VECTORS_PER_SAMPLE,
  meanOfSamples,
  samplesWithin,
  unpack,
  type StoredVector,
} from "../../search/means.ts";
import type { Transaction } from "../database/connections.ts";
import type { Target } from "../scopes/target.ts";

/** Vectors that one statement reads. */
const SLICE_VECTORS = 4096;
/** Changes that a partition remembers, so that a search of an older snapshot can undo them. */
const RECENT_MAX = 256;

/** The codes of a scope and a model in memory, which searches of several snapshots share. */
interface Partition {
  readonly codes: CodeList;
  readonly sizeAtMean: number;
  /** The codes include the changes up to this number. */
  upTo: number;
  /** The last of them; ascending, without gaps. */
  recent: readonly NumberedRange[];
}

interface NumberedRange extends RowRange {
  readonly number: number;
}

/** The codes of a snapshot. */
export interface SnapshotCodes {
  readonly codes: CodeList;
  /** Rows whose codes are of a later snapshot, with the vectors that they have in this one. */
  readonly other: { readonly ranges: readonly RowRange[]; readonly vectors: readonly StoredVector[] };
  /** Whether the slots of the codes are still the same. */
  readonly isUnchanged: () => boolean;
}

/** The codes of scopes, within their bounds. */
export interface PartitionCache {
  readonly partitions: Map<string, Partition>;
  /** The partitions in creation. */
  readonly making: Map<string, Promise<Partition | undefined>>;
  /** Chunks of a scope from which it may have an index in the database. */
  readonly hnswChunksMin: number;
}

export function makePartitionCache(hnswChunksMin: number): PartitionCache {
  return { partitions: new Map(), making: new Map(), hnswChunksMin };
}

/** Thrown if the codes have left a snapshot too far behind. The search runs again on a new one, like a write that lost a race. */
class SnapshotTooOld extends Error {
  readonly code = "40001";
}

/** Returns the codes of a scope; undefined if the scope has no vectors of the model. */
export async function openCodes(
  tx: Transaction,
  cache: PartitionCache,
  target: Target,
  model: number,
): Promise<SnapshotCodes | undefined> {
  const key = `${target.scope} ${model}`;
  for (;;) {
    const partition = await find(tx, cache, target, model, key);
    if (partition === undefined) return undefined;
    if (partition.upTo < target.vectorChanges && !(await advance(tx, partition, target, model))) {
      if (cache.partitions.get(key) === partition) cache.partitions.delete(key);
      continue;
    }
    const other = await undone(tx, partition, target, model);
    if (other === undefined) continue;
    cache.partitions.delete(key);
    cache.partitions.set(key, partition);
    evict(cache.partitions);
    const { upTo } = partition;
    return { codes: partition.codes, other, isUnchanged: () => partition.upTo === upTo };
  }
}

/** Finds a partition, or makes it. Searches of one scope make it once. */
async function find(
  tx: Transaction,
  cache: PartitionCache,
  target: Target,
  model: number,
  key: string,
): Promise<Partition | undefined> {
  const known = cache.partitions.get(key);
  if (known !== undefined && known.codes.size <= known.sizeAtMean * MEAN_GROWTH_MAX) return known;
  const others = cache.making.get(key);
  if (others !== undefined) {
    await others.catch(() => undefined);
    const made = cache.partitions.get(key);
    if (made !== undefined) return made;
  }
  const making = make(tx, target, model);
  cache.making.set(key, making);
  try {
    const made = await making;
    if (made === undefined) cache.partitions.delete(key);
    else cache.partitions.set(key, made);
    return made;
  } finally {
    if (cache.making.get(key) === making) cache.making.delete(key);
  }
}

/** Makes the codes of all vectors of a snapshot. */
async function make(tx: Transaction, target: Target, model: number): Promise<Partition | undefined> {
  const { accountId, scope, nextSequence, chunks, vectorChanges: upTo } = target;
  const { first, last } = rowsOfScope(scope);
  const mean = await readMean(tx, accountId, first, rowOf(scope, nextSequence), model);
  if (mean.length === 0) return undefined;
  const codes = makeCodeList(mean, STORED_BYTES_MAX, chunks);
  for (let from = first; ;) {
    const slice = await readVectors(tx, { accountId, model }, [{ first: from, last }], SLICE_VECTORS);
    for (const [row, value] of slice) codes.add(row, unpack(value), value);
    if (slice.length < SLICE_VECTORS) break;
    from = (slice.at(-1)?.[0] ?? last) + 1;
  }
  return { codes, sizeAtMean: codes.size, upTo, recent: [] };
}

async function readMean(
  tx: Transaction,
  accountId: string,
  first: number,
  end: number,
  model: number,
): Promise<Float32Array> {
  const samples = samplesWithin(first, end);
  const rows = await tx.all<{ readonly row: number; readonly value: Buffer }>(
    `SELECT row, value FROM unnest(@firsts::bigint[], @lasts::bigint[]) AS sample (first, last)
    CROSS JOIN LATERAL (
      SELECT row, value FROM chunk_vector WHERE account_id = @accountId AND row BETWEEN first AND last AND model = @model
      ORDER BY row LIMIT ${MEAN_VECTORS_PER_SAMPLE}) AS found
    ORDER BY row`,
    { accountId, model, firsts: samples.map((range) => range.first), lasts: samples.map(({ last }) => last) },
  );
  return meanOfSamples([rows.map(({ row, value }) => [row, value] as const)]);
}

/** Brings a partition forward to a snapshot. Returns false if the log does not reach back so far. */
async function advance(
  tx: Transaction,
  partition: Partition,
  target: Target,
  model: number,
): Promise<boolean> {
  const { accountId, scope, vectorChanges } = target;
  const { upTo } = partition;
  const changes = await tx.all<NumberedRange>(
    `SELECT number, first_row AS first, last_row AS last FROM vector_change
    WHERE account_id = @accountId AND scope = @scope AND number > @upTo::bigint AND number <= @vectorChanges::bigint ORDER BY number`,
    { accountId, scope, upTo, vectorChanges },
  );
  if (changes.length !== vectorChanges - upTo) return false;
  const ranges = inOrder(changes);
  const vectors = await readVectors(tx, { accountId, model }, ranges);
  // Another search may have done it meanwhile, perhaps for another snapshot.
  if (partition.upTo !== upTo) return true;
  partition.codes.removeRanges(ranges);
  for (const [row, value] of vectors) partition.codes.add(row, unpack(value), value);
  partition.recent = [...partition.recent, ...changes].slice(-RECENT_MAX);
  partition.upTo = vectorChanges;
  return true;
}

/**
 * Returns what the snapshot holds where later changes have replaced it. Undefined: the codes have changed meanwhile, so call it
 * again. Throws `SnapshotTooOld`.
 */
async function undone(
  tx: Transaction,
  partition: Partition,
  { accountId, vectorChanges }: Target,
  model: number,
): Promise<SnapshotCodes["other"] | undefined> {
  const { upTo, recent } = partition;
  if (upTo < vectorChanges) return undefined;
  if (upTo === vectorChanges) return { ranges: [], vectors: [] };
  const later = recent.filter(({ number }) => number > vectorChanges);
  if (later.length !== upTo - vectorChanges) throw new SnapshotTooOld();
  const ranges = inOrder(later);
  const vectors = await readVectors(tx, { accountId, model }, ranges);
  return partition.upTo === upTo ? { ranges, vectors } : undefined;
}

function inOrder(changes: readonly NumberedRange[]): RowRange[] {
  return mergedRanges(changes.toSorted((a, b) => a.first - b.first));
}

/** Reads the vectors of ranges of rows, which ascend. */
export async function readVectors(
  tx: Transaction,
  { accountId, model }: { readonly accountId: string; readonly model: number },
  ranges: readonly RowRange[],
  limit?: number,
): Promise<StoredVector[]> {
  if (ranges.length === 0) return [];
  const rows = await tx.all<{ readonly row: number; readonly value: Buffer }>(
    `SELECT row, value FROM unnest(@firsts::bigint[], @lasts::bigint[]) AS range (first, last)
    JOIN chunk_vector ON chunk_vector.row BETWEEN range.first AND range.last
    WHERE account_id = @accountId AND model = @model ORDER BY row LIMIT @limit`,
    {
      accountId,
      model,
      firsts: ranges.map(({ first }) => first),
      lasts: ranges.map(({ last }) => last),
      limit: limit ?? null,
    },
  );
  return rows.map(({ row, value }) => [row, value]);
}
