import { makeCodeList, type CodeList } from "../../../index/codes.ts";
import { rowOf, rowsOfScope, type RowRange } from "../../../index/rows.ts";
import { DamagedIndex } from "../../../index/seal.ts";
import type { Connection } from "../database/connection.ts";
import type { SearchTarget } from "../../search/search-target.ts";
import { prepareCodeReads, type CodeReads } from "./code-reads.ts";
import { evict, MEAN_GROWTH_MAX, mergedRanges, STORED_BYTES_MAX } from "../../search/code-cache.ts";
import { unpack } from "../../search/means.ts";
import { meanOf, type VectorRange } from "./stored-vectors.ts";

/**
 * Maximum vectors that one call encodes, and runs that it reads, in about 10 ms. A million vectors take several seconds,
 * during which no other read could run.
 */
const SLICE_VECTORS = 4096;
const SLICE_RUNS = 32;

/** The codes of a scope and a model in memory. */
export interface Partition {
  readonly codes: CodeList;
}

interface Made extends Partition {
  readonly mean: Float32Array;
  /** The mean is that of the model, which its stored runs have too. */
  readonly isOfModel: boolean;
  /** Size when its own mean was computed; undefined while the codes are incomplete. */
  sizeAtMean: number | undefined;
  /** Ranges that have changed since their runs were written; undefined: all runs were read, or there are none. */
  changes: readonly RowRange[] | undefined;
  /** All rows below this one have their codes. */
  madeTo: number;
  /** The codes include the changes up to this number. */
  upTo: number;
}

/**
 * Prepares the codes of scopes. They are read from the stored runs, and made of the vectors behind them, at the first search of
 * a scope; then they follow the change log of the writer. They are evicted above their bounds.
 */
export function preparePartitions(db: Connection, vectors: VectorRange) {
  const selectChanges = db.prepare<[number, number], RowRange>(`
    SELECT first_row AS first, last_row AS last FROM vector_change WHERE number > ? AND scope = ?
    ORDER BY first_row`);
  // As separate subqueries each reads one end of the table; selecting both at once would scan it.
  const selectLog = db.prepare<[], { oldest: number; newest: number }>(`
    SELECT ifnull((SELECT min(number) FROM vector_change), 0) AS oldest,
      ifnull((SELECT max(number) FROM vector_change), 0) AS newest`);
  const stored = prepareCodeReads(db);
  const { advance, replace } = openMaking(stored, vectors);
  const partitions = new Map<string, Made>();
  /** Partitions whose stored runs are damaged. Their codes are made of the vectors. */
  const damaged = new Set<string>();

  function open(
    { scope, nextSequence, chunks }: SearchTarget,
    model: number,
    upTo: number,
    isSound: boolean,
  ) {
    const { first } = rowsOfScope(scope);
    const ofModel = stored.meanOfModel(model);
    const mean = ofModel ?? meanOf(vectors, first, rowOf(scope, nextSequence), model);
    if (mean.length === 0) return undefined;
    const codes = makeCodeList(mean, STORED_BYTES_MAX, chunks);
    const isOfModel = ofModel !== undefined;
    const changes = isOfModel && isSound ? mergedRanges(stored.changes(scope)) : undefined;
    return { codes, mean, isOfModel, changes, sizeAtMean: undefined, madeTo: first, upTo };
  }

  function isOutdated(partition: Made, oldest: number): boolean {
    const { codes, isOfModel, sizeAtMean, upTo } = partition;
    const hasGrown = !isOfModel && sizeAtMean !== undefined && codes.size > sizeAtMean * MEAN_GROWTH_MAX;
    return hasGrown || upTo < oldest - 1;
  }

  /** Returns the codes of a scope, updated; undefined if the scope has no vectors of the model. `isLast` makes all at once. */
  function of(target: SearchTarget, model: number, isLast: boolean): Partition | "incomplete" | undefined {
    const { scope } = target;
    const key = `${scope} ${model}`;
    const log = selectLog.get() ?? { oldest: 0, newest: 0 };
    let partition = partitions.get(key);
    partitions.delete(key);
    if (partition === undefined || isOutdated(partition, log.oldest))
      partition = open(target, model, log.newest, !damaged.has(key));
    if (partition === undefined) return undefined;
    try {
      if (partition.sizeAtMean === undefined) advance(partition, scope, model, isLast);
    } catch (error) {
      if (!(error instanceof DamagedIndex)) throw error;
      damaged.add(key);
      return of(target, model, isLast);
    }
    if (partition.sizeAtMean !== undefined && partition.upTo < log.newest) {
      replace(partition.codes, mergedRanges(selectChanges.all(partition.upTo, scope)), model);
      partition.upTo = log.newest;
    }
    partitions.set(key, partition);
    evict(partitions);
    return partition.sizeAtMean === undefined ? "incomplete" : partition;
  }
  return { of };
}

/** Returns how the codes of a partition are made, and replaced where vectors have changed. */
function openMaking(stored: CodeReads, vectors: VectorRange) {
  /** Reads the next runs. The ranges that changed since are replaced after the last one. */
  function readRuns(partition: Made, changes: readonly RowRange[], scope: number, model: number): void {
    const { codes, mean } = partition;
    const runs = stored.runs(scope, model, partition.madeTo, mean, SLICE_RUNS);
    for (const { first, last, run } of runs) {
      codes.addRun(first, run);
      partition.madeTo = last + 1;
    }
    if (runs.length === SLICE_RUNS) return;
    const end = partition.madeTo - 1;
    const within = changes.map(({ first, last }) => ({ first, last: Math.min(last, end) }));
    replace(
      codes,
      within.filter(({ first }) => first <= end),
      model,
    );
    partition.changes = undefined;
  }
  /** Makes the next codes of vectors. Changes of rows that already have codes are in the log, which is applied at the end. */
  function make(partition: Made, scope: number, model: number, limit: number): void {
    const { codes } = partition;
    let count = 0;
    for (const [row, value] of vectors.iterate(partition.madeTo, rowsOfScope(scope).last, model, limit)) {
      codes.add(row, unpack(value), value);
      partition.madeTo = row + 1;
      count++;
    }
    if (count !== limit) partition.sizeAtMean = codes.size;
  }
  function replace(codes: CodeList, ranges: readonly RowRange[], model: number): void {
    codes.removeRanges(ranges);
    for (const { first, last } of ranges) {
      for (const [row, value] of vectors.iterate(first, last, model, -1))
        codes.add(row, unpack(value), value);
    }
  }
  /** Makes a step, or all that is left. */
  function advance(partition: Made, scope: number, model: number, isLast: boolean): void {
    do {
      if (partition.changes !== undefined) readRuns(partition, partition.changes, scope, model);
      else make(partition, scope, model, isLast ? -1 : SLICE_VECTORS);
      if (!isLast) return;
    } while (partition.sizeAtMean === undefined);
  }
  return { advance, replace };
}
