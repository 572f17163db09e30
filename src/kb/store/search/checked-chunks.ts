/** Scopes whose progress is remembered. A forgotten one is checked from its first chunk. */
export const SCOPES_MAX = 1000;

/** A chunk without a vector, and the number of its document. */
export interface Lacking {
  readonly row: number;
  readonly resource: number;
}

/** The chunks of a scope that were checked for vectors of a model. */
export interface Checked {
  /** All chunks up to this row have a vector, except `lacking`. */
  readonly row: number;
  /** Ascending. */
  readonly lacking: readonly Lacking[];
}
