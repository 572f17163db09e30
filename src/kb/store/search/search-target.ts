import type { RowSet } from "../../index/row-set.ts";
import type { RowRange } from "../../index/rows.ts";
import type { Evidence, EvidenceQuery } from "../search-index.ts";

/** The rows that a search covers, with the statistics of their scope. */
export interface SearchTarget {
  /** The owner's part of the collection. Its statistics weigh the words, even in a search of one resource. */
  readonly scope: number;
  /** Live chunks of the scope, and their words. */
  readonly chunks: number;
  readonly words: number;
  /** Sequence of the next chunk of the scope: all lower ones exist or are gone for good. */
  readonly nextSequence: number;
  /** Changes when parts of the index of words are merged. */
  readonly merged: number;
  /** Rows to search: those of the scope, or of one resource. */
  readonly range: RowRange;
  /** Live chunks in that range. */
  readonly rangeChunks: number;
  /** Sequences that a filter lets through; undefined: all. */
  readonly allowed: RowSet | undefined;
}

/** The evidence of a scope that does not exist. */
export function noEvidence({ nearest }: EvidenceQuery): Evidence {
  return {
    lexical: { hits: [], ceiling: 0 },
    scopeChunks: 0,
    nearest: nearest && [],
    others: [],
    nearestMatches: [],
    chunks: [],
  };
}
