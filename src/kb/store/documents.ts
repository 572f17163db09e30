import type { Scope } from "./records.ts";

/** What the store tells of whole documents, by which the tier `high_accuracy` judges their chunks too. */
export interface DocumentStore {
  /**
   * How well the whole text of each chunk's document fits the query. A chunk of a long document is left out: that is about
   * many things.
   */
  documentMatches(query: DocumentQuery): Promise<readonly DocumentMatch[]>;
}

export interface DocumentQuery {
  readonly scope: Scope;
  readonly query: string;
  /** At most 100. */
  readonly rows: readonly number[];
}

export interface DocumentMatch {
  readonly row: number;
  /** Of the document, from 0; to be compared among the answers to one query only. */
  readonly bm25: number;
  /** Of the document, from 1. */
  readonly chunks: number;
}
