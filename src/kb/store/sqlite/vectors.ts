import type { VectorHit } from "../store.ts";
import { makeCodeList, type CodeList } from "./codes.ts";
import type { Connection } from "./connection.ts";
import { dequantize, dimensionsOf, dotQuantized } from "./quantized.ts";
import { rowOf, rowsOfScope, type RowRange } from "./rows.ts";
import type { Place } from "./scopes.ts";

/** Chunks whose cosine is computed exactly, at least, and for each hit wanted; see the test of recall. */
const RESCORED_MIN = 400;
const RESCORED_PER_HIT = 4;
/** Memory for codes, in bytes: 4 million vectors of 384 dimensions. Scopes longest unused go first. */
const CODE_BYTES_MAX = 256 * 1024 * 1024;
/** A list this much longer than when its mean was taken is made anew. */
const MEAN_GROWTH_MAX = 2;

/** Searches by vector over one connection. */
export interface Vectors {
  nearest(place: Place, fingerprint: string, vector: Float32Array, limit: number): VectorHit[];
}

interface Partition {
  readonly codes: CodeList;
  readonly sizeAtMean: number;
  /** Changes up to this one are in the codes. */
  upTo: number;
}

interface VectorRow {
  readonly row: number;
  readonly value: Buffer;
}

/**
 * Prepares the search for vectors: a scan over the 1-bit codes of a scope, in memory, then exact cosines of the best.
 * The codes of a scope are made when it is first searched and then follow the changes that the writer notes.
 */
export function prepareVectors(db: Connection): Vectors {
  const selectModel = db
    .prepare<[string], number>("SELECT number FROM embedding_model WHERE fingerprint = ?")
    .pluck();
  const selectRange = db.prepare<[number, number, number], VectorRow>(
    "SELECT row, value FROM vector WHERE row BETWEEN ? AND ? AND model = ?",
  );
  const selectOne = db
    .prepare<[number, number], Buffer>("SELECT value FROM vector WHERE row = ? AND model = ?")
    .pluck();
  const selectChanges = db.prepare<[number, number], { number: number; first: number; last: number }>(`
    SELECT number, first_row AS first, last_row AS last FROM vector_change WHERE number > ? AND scope = ?
    ORDER BY first_row`);
  const selectLog = db.prepare<[], { oldest: number; newest: number }>(
    "SELECT ifnull(min(number), 0) AS oldest, ifnull(max(number), 0) AS newest FROM vector_change",
  );
  const partitions = new Map<string, Partition>();

  function partitionOf(scope: number, model: number): Partition {
    const key = `${scope} ${model}`;
    const log = selectLog.get() ?? { oldest: 0, newest: 0 };
    let partition = partitions.get(key);
    partitions.delete(key);
    const isLost = partition !== undefined && partition.upTo < log.oldest - 1;
    if (partition === undefined || isLost || partition.codes.size > partition.sizeAtMean * MEAN_GROWTH_MAX) {
      partition = read(rowsOfScope(scope), model, log.newest);
    } else if (partition.upTo < log.newest) {
      follow(partition, scope, model, log.newest);
    }
    partitions.set(key, partition);
    let bytes = 0;
    for (const { codes } of partitions.values()) bytes += codes.bytes;
    for (const [oldest, { codes }] of partitions) {
      if (bytes <= CODE_BYTES_MAX || partitions.size === 1) break;
      partitions.delete(oldest);
      bytes -= codes.bytes;
    }
    return partition;
  }

  function read({ first, last }: RowRange, model: number, upTo: number): Partition {
    let sum = new Float32Array(0);
    let count = 0;
    for (const { value } of selectRange.iterate(first, last, model)) {
      if (count === 0) sum = new Float32Array(dimensionsOf(value));
      const vector = floats(value);
      for (let at = 0; at < sum.length; at++) sum[at] = (sum[at] ?? 0) + (vector[at] ?? 0);
      count++;
    }
    const codes = makeCodeList(sum.map((value) => value / Math.max(1, count)));
    for (const { row, value } of selectRange.iterate(first, last, model)) codes.add(row, floats(value));
    return { codes, sizeAtMean: Math.max(1, codes.size), upTo };
  }

  function follow(partition: Partition, scope: number, model: number, newest: number): void {
    for (const { first, last } of merged(selectChanges.all(partition.upTo, scope))) {
      partition.codes.removeRange(first, last);
      for (const { row, value } of selectRange.iterate(first, last, model))
        partition.codes.add(row, floats(value));
    }
    partition.upTo = newest;
  }

  return {
    nearest({ scope, range, rangeChunks, allowed }, fingerprint, vector, limit) {
      const model = selectModel.get(fingerprint);
      if (model === undefined) return [];
      const count = Math.max(RESCORED_MIN, limit * RESCORED_PER_HIT);
      const hits: VectorHit[] = [];
      const add = (row: number): void => {
        const value = selectOne.get(row, model);
        if (value !== undefined) hits.push({ row, cosine: dotQuantized(vector, value) });
      };
      const base = rowOf(scope, 0);
      const few = allowed?.within({ first: range.first - base, last: range.last - base }, count);
      if (few !== undefined && few.length <= count) {
        for (const sequence of few) add(base + sequence);
      } else if (rangeChunks <= count && allowed === undefined) {
        for (const { row, value } of selectRange.iterate(range.first, range.last, model)) {
          hits.push({ row, cosine: dotQuantized(vector, value) });
        }
      } else {
        const { codes } = partitionOf(scope, model);
        const isAllowed = allowed && ((row: number): boolean => allowed.has(row - base));
        for (const row of codes.nearest(vector, range.first, range.last, count, isAllowed)) add(row);
      }
      return hits.sort((a, b) => b.cosine - a.cosine || a.row - b.row).slice(0, limit);
    },
  };
}

function floats(value: Buffer): Float32Array {
  const vector = new Float32Array(dimensionsOf(value));
  dequantize(value, vector);
  return vector;
}

/** Ranges in ascending order, those that touch or overlap made one: consecutive documents are one look-up. */
function merged(ranges: readonly RowRange[]): RowRange[] {
  const result: { first: number; last: number }[] = [];
  for (const { first, last } of ranges) {
    const before = result.at(-1);
    if (before !== undefined && first <= before.last + 1) before.last = Math.max(before.last, last);
    else result.push({ first, last });
  }
  return result;
}
