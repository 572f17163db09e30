/**
 * Turns texts into vectors. Promises, which the contract suite checks on every implementation: vectors have unit length and
 * `dimensions` values; a text gets the same vector in any batch (to 1e-3); vectors are in the order of the texts; an empty
 * list gives an empty list.
 */
export interface Embedder {
  /** Identifies model, weights and pooling: embedders with equal fingerprints share a vector space. */
  readonly fingerprint: string;
  readonly dimensions: number;
  /** Maximum tokens of a text; the model truncates longer ones. */
  readonly tokensMax: number;
  embed(texts: readonly string[], signal?: AbortSignal): Promise<Float32Array[]>;
  close(): Promise<void>;
}

/** Called with the tokens of an answer, as the endpoint of a remote model counts them. */
export type OnTokens = (tokens: number) => void;
