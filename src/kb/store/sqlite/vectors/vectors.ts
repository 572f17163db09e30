import type { VectorHit } from "../../search-index.ts";
import type { Connection } from "../database/connection.ts";
import { dotQuantized } from "../../../index/quantized.ts";
import { rowOf } from "../../../index/rows.ts";
import { rescoredCount } from "../../search/code-cache.ts";
import type { SearchTarget } from "../../search/search-target.ts";
import { preparePartitions } from "./partitions.ts";
import { prepareVectorRange } from "./stored-vectors.ts";

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

/**
 * Prepares the search by vector: scans the 1-bit codes of a scope in memory, then computes exact cosines of the best.
 */
export function prepareVectors(db: Connection): Vectors {
  const selectModel = db
    .prepare<[string], number>("SELECT number FROM embedding_model WHERE fingerprint = ?")
    .pluck();
  const selectOne = db
    .prepare<[number, number], Buffer>("SELECT value FROM vector WHERE row = ? AND model = ?")
    .pluck();
  const selectRange = prepareVectorRange(db);
  const partitions = preparePartitions(db, selectRange);

  return {
    nearest(target, fingerprint, vector, limit, isLast = false) {
      const { scope, range, rangeChunks, allowed } = target;
      const model = selectModel.get(fingerprint);
      if (model === undefined) return [];
      const count = rescoredCount(limit);
      const hits: VectorHit[] = [];
      const add = (row: number): Buffer | undefined => {
        const value = selectOne.get(row, model);
        if (value !== undefined) hits.push({ ref: row, cosine: dotQuantized(vector, value) });
        return value;
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
        if (partition === "incomplete") return undefined;
        const { codes } = partition;
        const isAllowed = allowed && ((row: number): boolean => allowed.has(row - base));
        for (const at of codes.nearest(vector, range.first, range.last, count, isAllowed)) {
          const row = codes.rowAt(at);
          const cosine = codes.cosineAt(at, vector);
          if (cosine !== undefined) {
            hits.push({ ref: row, cosine });
            continue;
          }
          const value = add(row);
          if (value !== undefined) codes.cache(at, value);
        }
      }
      return hits.sort((a, b) => b.cosine - a.cosine || a.ref - b.ref).slice(0, limit);
    },
  };
}
