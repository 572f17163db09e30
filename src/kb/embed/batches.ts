/** Bounds of one call into the model. */
export interface BatchBounds {
  /** Most tokens of a batch, padding included. A single text may always go alone. */
  readonly tokens: number;
  /** Most texts of a batch. */
  readonly texts: number;
  /** Longest text in tokens: what is longer is cut by the model and costs no more than this. */
  readonly tokensMax: number;
}

/** UTF-8 bytes of a token, on the low side (English has 4 to 5, Chinese 3), so that batches stay within their bound. */
const BYTES_A_TOKEN = 3;
/** The marks the tokenizer puts at the beginning and the end. */
const MARK_TOKENS = 2;

/**
 * Groups texts into batches, as indices into `texts`. Texts of like length stand together, because every text of a
 * batch is padded to its longest. Every index appears once; longest texts first.
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
    // The order descends, so the first text of a batch is its longest.
    if (batch.length === 0) width = sizes[index] ?? 0;
    batch.push(index);
  }
  if (batch.length > 0) batches.push(batch);
  return batches;
}

function estimateTokens(text: string, tokensMax: number): number {
  return Math.min(tokensMax, Math.ceil(Buffer.byteLength(text) / BYTES_A_TOKEN) + MARK_TOKENS);
}
