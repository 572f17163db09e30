import type { VectorHit } from "../../search-index.ts";
import { makeCodeList, type CodeList } from "../../../index/codes.ts";
import type { Connection } from "../database/connection.ts";
import { dequantize, dimensionsOf, dotQuantized } from "../../../index/quantized.ts";
import { rowOf, rowsOfScope, type RowRange } from "../../../index/rows.ts";
import type { SearchTarget } from "../scopes/scopes.ts";

/** Number of chunks whose cosine is computed exactly: the minimum, and the number per hit. See the test of recall. */
const RESCORED_MIN = 400;
const RESCORED_PER_HIT = 4;
/** Memory for codes, in bytes: 4 million vectors of 384 dimensions. The least recently used scopes are evicted first. */
const CODE_BYTES_MAX = 256 * 1024 * 1024;
/**
 * Memory for the vectors of the codes, in bytes: 250,000 of 384 dimensions. Above it, the vectors of the least recently used
 * scopes are evicted, and read from the database as needed, about 400 per search.
 */
const STORED_BYTES_MAX = 96 * 1024 * 1024;
/** Growth of a list since its mean was computed after which it is rebuilt. */
const MEAN_GROWTH_MAX = 2;
/**
 * The mean is computed from samples spread over the scope. The mean of thousands of vectors differs from that of all by a
 * hundredth of a vector's distance to it, and reading all vectors twice would double the time to load a scope.
 */
const MEAN_SAMPLES = 128;
const MEAN_VECTORS_PER_SAMPLE = 64;

/**
 * Maximum vectors that one call encodes, in about 10 ms. A million take several seconds, during which no other read could
 * run.
 */
const SLICE_VECTORS = 4096;

/** Searches by vector. */
export interface Vectors {
  /**
   * Returns the nearest chunks, best first. Undefined: the codes of the scope are incomplete; the same call continues to
   * make them. `isLast` makes all at once.
   */
  nearest(
    target: SearchTarget,
    fingerprint: string,
    vector: Float32Array,
    limit: number,
    isLast?: boolean,
  ): VectorHit[] | undefined;
}

interface Partition {
  readonly codes: CodeList;
  /** Size when the mean was computed; undefined while the codes are incomplete. */
  sizeAtMean: number | undefined;
  /** All rows below this one have their codes. */
  madeTo: number;
  /** The codes include the changes up to this number. */
  upTo: number;
}

/**
 * Prepares the search by vector: scans the 1-bit codes of a scope in memory, then computes exact cosines of the best. The
 * codes of a scope are made at its first search and then follow the change log of the writer.
 */
export function prepareVectors(db: Connection): Vectors {
  const selectModel = db
    .prepare<[string], number>("SELECT number FROM embedding_model WHERE fingerprint = ?")
    .pluck();
  const selectOne = db
    .prepare<[number, number], Buffer>("SELECT value FROM vector WHERE row = ? AND model = ?")
    .pluck();
  const selectRange = prepareRange(db);
  const partitions = preparePartitions(db, selectRange);

  return {
    nearest(target, fingerprint, vector, limit, isLast = false) {
      const { scope, range, rangeChunks, allowed } = target;
      const model = selectModel.get(fingerprint);
      if (model === undefined) return [];
      const count = Math.max(RESCORED_MIN, limit * RESCORED_PER_HIT);
      const hits: VectorHit[] = [];
      const add = (row: number): void => {
        const value = selectOne.get(row, model);
        if (value !== undefined) hits.push({ ref: row, cosine: dotQuantized(vector, value) });
      };
      const base = rowOf(scope, 0);
      const few = allowed?.within({ first: range.first - base, last: range.last - base }, count);
      if (few !== undefined && few.length <= count) {
        for (const sequence of few) add(base + sequence);
      } else if (rangeChunks <= count && allowed === undefined) {
        for (const [row, value] of selectRange.iterate(range.first, range.last, model, -1)) {
          hits.push({ ref: row, cosine: dotQuantized(vector, value) });
        }
      } else {
        const partition = partitions.of(target, model, isLast);
        if (partition === undefined) return [];
        const { codes, sizeAtMean } = partition;
        if (sizeAtMean === undefined) return undefined;
        const isAllowed = allowed && ((row: number): boolean => allowed.has(row - base));
        for (const at of codes.nearest(vector, range.first, range.last, count, isAllowed)) {
          const row = codes.rowAt(at);
          const cosine = codes.cosineAt(at, vector);
          if (cosine === undefined) add(row);
          else hits.push({ ref: row, cosine });
        }
      }
      return hits.sort((a, b) => b.cosine - a.cosine || a.ref - b.ref).slice(0, limit);
    },
  };
}

/** Prepares the vectors of consecutive rows; a limit of -1 is none. */
function prepareRange(db: Connection) {
  return db
    .prepare<[first: number, last: number, model: number, limit: number], [row: number, value: Buffer]>(
      "SELECT row, value FROM vector WHERE row BETWEEN ? AND ? AND model = ? ORDER BY row LIMIT ?",
    )
    .raw();
}

type RangeStatement = ReturnType<typeof prepareRange>;

/** Prepares the codes of scopes, which are made in steps, follow the change log, and are evicted above their bounds. */
function preparePartitions(db: Connection, selectRange: RangeStatement) {
  const selectChanges = db.prepare<[number, number], { number: number; first: number; last: number }>(`
    SELECT number, first_row AS first, last_row AS last FROM vector_change WHERE number > ? AND scope = ?
    ORDER BY first_row`);
  // As separate subqueries each reads one end of the table; selecting both at once would scan it.
  const selectLog = db.prepare<[], { oldest: number; newest: number }>(`
    SELECT ifnull((SELECT min(number) FROM vector_change), 0) AS oldest,
      ifnull((SELECT max(number) FROM vector_change), 0) AS newest`);
  const partitions = new Map<string, Partition>();

  /** Makes the next codes. Changes of rows that already have codes are in the log, which is applied at the end. */
  function make(partition: Partition, scope: number, model: number, isLast: boolean): void {
    const { codes } = partition;
    const limit = isLast ? -1 : SLICE_VECTORS;
    let count = 0;
    for (const [row, value] of selectRange.iterate(partition.madeTo, rowsOfScope(scope).last, model, limit)) {
      codes.add(row, unpack(value), value);
      partition.madeTo = row + 1;
      count++;
    }
    if (count !== limit) partition.sizeAtMean = codes.size;
  }

  function follow(partition: Partition, scope: number, model: number, newest: number): void {
    const changed = merged(selectChanges.all(partition.upTo, scope));
    partition.codes.removeRanges(changed);
    for (const { first, last } of changed) {
      for (const [row, value] of selectRange.iterate(first, last, model, -1))
        partition.codes.add(row, unpack(value), value);
    }
    partition.upTo = newest;
  }

  return {
    /** Returns the codes of a scope, updated; undefined if the scope has no vectors of the model. */
    of({ scope, nextSequence }: SearchTarget, model: number, isLast: boolean): Partition | undefined {
      const key = `${scope} ${model}`;
      const log = selectLog.get() ?? { oldest: 0, newest: 0 };
      let partition = partitions.get(key);
      partitions.delete(key);
      const isBehindLog = partition !== undefined && partition.upTo < log.oldest - 1;
      const hasGrown =
        partition?.sizeAtMean !== undefined && partition.codes.size > partition.sizeAtMean * MEAN_GROWTH_MAX;
      if (partition === undefined || isBehindLog || hasGrown) {
        const { first } = rowsOfScope(scope);
        const mean = meanOf(selectRange, first, rowOf(scope, nextSequence), model);
        if (mean.length === 0) return undefined;
        const codes = makeCodeList(mean, STORED_BYTES_MAX);
        partition = { codes, sizeAtMean: undefined, madeTo: first, upTo: log.newest };
      }
      if (partition.sizeAtMean === undefined) make(partition, scope, model, isLast);
      if (partition.sizeAtMean !== undefined && partition.upTo < log.newest)
        follow(partition, scope, model, log.newest);
      partitions.set(key, partition);
      evict(partitions);
      return partition;
    },
  };
}

/**
 * Evicts vectors and codes of the least recently used scopes, which come first, above the bounds. The last scope keeps its codes,
 * which its search is about to read.
 */
export function evict(
  partitions: Map<string, { readonly codes: Pick<CodeList, "bytes" | "storedBytes" | "dropStored"> }>,
): void {
  let bytes = 0;
  let storedBytes = 0;
  for (const { codes } of partitions.values()) {
    bytes += codes.bytes;
    storedBytes += codes.storedBytes;
  }
  for (const [oldest, { codes }] of partitions) {
    if (storedBytes > STORED_BYTES_MAX) {
      storedBytes -= codes.storedBytes;
      codes.dropStored();
    }
    if (bytes <= CODE_BYTES_MAX || partitions.size === 1) continue;
    partitions.delete(oldest);
    bytes -= codes.bytes;
  }
}

/** Returns the mean of samples of the vectors from row `first` up to `end`, exclusive; empty: there are none. */
function meanOf(selectRange: RangeStatement, first: number, end: number, model: number): Float32Array {
  const step = Math.max(MEAN_VECTORS_PER_SAMPLE, Math.ceil((end - first) / MEAN_SAMPLES));
  let sum = new Float32Array(0);
  let count = 0;
  for (let from = first; from < end; from += step) {
    for (const [, value] of selectRange.iterate(from, from + step - 1, model, MEAN_VECTORS_PER_SAMPLE)) {
      const vector = unpack(value);
      if (count === 0) sum = new Float32Array(vector.length);
      for (let at = 0; at < sum.length; at++) sum[at] = (sum[at] ?? 0) + (vector[at] ?? 0);
      count++;
    }
  }
  return sum.map((value) => value / count);
}

/** Unpacks a stored vector. The next call reuses the array. */
function unpack(value: Buffer): Float32Array {
  const dimensions = dimensionsOf(value);
  if (unpacked.length !== dimensions) unpacked = new Float32Array(dimensions);
  dequantize(value, unpacked);
  return unpacked;
}

let unpacked = new Float32Array(0);

/** Merges ascending ranges that touch or overlap, so that consecutive documents need one lookup. */
function merged(ranges: readonly RowRange[]): RowRange[] {
  const result: { first: number; last: number }[] = [];
  for (const { first, last } of ranges) {
    const before = result.at(-1);
    if (before !== undefined && first <= before.last + 1) before.last = Math.max(before.last, last);
    else result.push({ first, last });
  }
  return result;
}
