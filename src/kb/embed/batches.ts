/** Bounds of a batch. */
export interface BatchBounds {
  /** Maximum tokens of a batch, padding included. A single text may exceed it. */
  readonly tokens: number;
  /** Maximum texts of a batch. */
  readonly texts: number;
  /** Maximum tokens of a text: the model truncates longer ones, so they cost no more. */
  readonly tokensMax: number;
}

/** UTF-8 bytes per token, a low estimate (English has 4 to 5, Chinese 3), so that batches stay within their bound. */
const BYTES_PER_TOKEN = 3;
/** Tokens that the tokenizer adds at the start and the end. */
const MARK_TOKENS = 2;

/**
 * Groups texts into batches, as indices into `texts`. Batches texts of similar length, because the model pads every text to
 * the longest of its batch. Every index appears once; longest texts first.
 */
export function groupIntoBatches(
  texts: readonly string[],
  bounds: BatchBounds,
): readonly (readonly number[])[] {
  const sizes = texts.map((text) => estimateTokens(text, bounds.tokensMax));
  const order = sizes.map((_, index) => index).sort((a, b) => (sizes[b] ?? 0) - (sizes[a] ?? 0) || a - b);
  const batches: number[][] = [];
  let batch: number[] = [];
  let width = 0;
  for (const index of order) {
    const full = batch.length >= bounds.texts || (batch.length + 1) * width > bounds.tokens;
    if (batch.length > 0 && full) {
      batches.push(batch);
      batch = [];
    }
    // Lengths descend, so the first text of a batch is its longest.
    if (batch.length === 0) width = sizes[index] ?? 0;
    batch.push(index);
  }
  if (batch.length > 0) batches.push(batch);
  return batches;
}

function estimateTokens(text: string, tokensMax: number): number {
  return Math.min(tokensMax, Math.ceil(Buffer.byteLength(text) / BYTES_PER_TOKEN) + MARK_TOKENS);
}
