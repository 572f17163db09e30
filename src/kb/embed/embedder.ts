/**
 * Turns text into vectors. Promises (the contract suite checks them on every implementation):
 * vectors have unit length and `dimensions` values; the same text gives the same vector whatever stands beside it in
 * the batch (to 1e-3); the order of the answer is the order of the texts; an empty list gives an empty list.
 */
export interface Embedder {
  /** Names model, weights and pooling: two embedders with one fingerprint give vectors of one space. */
  readonly fingerprint: string;
  readonly dimensions: number;
  /** Most tokens of a text that count; what is longer is cut by the model. */
  readonly tokensMax: number;
  embed(texts: readonly string[], signal?: AbortSignal): Promise<Float32Array[]>;
  close(): Promise<void>;
}
