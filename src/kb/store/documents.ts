import type { Scope } from "./records.ts";

/** Scores of whole documents. The tier `high_accuracy` uses them to rank their chunks. */
export interface DocumentStore {
  /**
   * Scores the whole text of each chunk's document against the query. Leaves out chunks of long documents, which have many
   * subjects.
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
  /** Score of the document, from 0. Comparable only among the matches of one query. */
  readonly bm25: number;
  /** Number of chunks of the document, from 1. */
  readonly chunks: number;
}
