import type { Settings } from "../../../wire/primitives.ts";
import { CHUNK_COST } from "./costs.ts";
import { outlineOf } from "./outline.ts";
import { sizesOf } from "./pieces.ts";
import type { Pieces, Sizes } from "./pieces.ts";
import { framedEnd, latestEnd, planChunks } from "./plan.ts";
import type { Span } from "./span.ts";
import { spansOf } from "./spans.ts";
import { unitsOf } from "./units.ts";

/** Embeddings of a text's units: one unit vector each, concatenated. */
export interface Meaning {
  readonly vectors: Float32Array;
  readonly dimensions: number;
}

/** Cost of a chunk of unrelated parts, on the scale of costs.ts. */
const SCATTER_COST = 100;

/**
 * Splits a text where its meaning changes: finds the cuts between units with the most coherent chunks at the best structural
 * positions. The laws of a chunker hold for any vectors. Time is proportional to the units of the text times those of a chunk.
 */
export function chunkSemantic(
  text: string,
  settings: Settings,
  unitsMax: number,
  meaning: Meaning,
): readonly Span[] {
  const sizes = sizesOf(settings.chunkSize, settings.chunkOverlap);
  const outline = outlineOf(text, sizes);
  const first = unitsOf(outline.pieces, sizes, unitsMax);
  const last =
    first === undefined
      ? planChunks(outline.pieces, sizes)
      : planByMeaning(outline.pieces, sizes, first, meaning);
  return spansOf(text, outline, sizes, last);
}

/**
 * Like `planChunks`, for chunks of whole units: cost(i) = min over j of CHUNK_COST + scatter of units i … j + cost of the cut after
 * them + cost(j + 1). The scatter follows from the sum of their vectors, which grows by one unit per step.
 */
function planByMeaning(
  pieces: Pieces,
  sizes: Sizes,
  first: readonly number[],
  { vectors, dimensions }: Meaning,
): Int32Array {
  const count = first.length;
  const endPiece = (unit: number): number => (first[unit + 1] ?? pieces.ends.length) - 1;
  const last = Int32Array.from(pieces.begins, (_, piece) => piece);
  const cost = new Float64Array(count + 1);
  const sum = new Float64Array(dimensions);
  for (let begin = count - 1; begin >= 0; begin--) {
    const beginPiece = first[begin] ?? 0;
    const limit = latestEnd(pieces, sizes, beginPiece);
    let weights = 0;
    let square = 0; // of the length of the sum
    let best = Infinity;
    sum.fill(0);
    for (let end = begin; end < count; end++) {
      const until = endPiece(end);
      const endsAt = pieces.ends[until] ?? 0;
      if (end > begin && framedEnd(pieces, until) > limit) break;
      const weight = (endsAt - (pieces.begins[first[end] ?? 0] ?? 0)) / sizes.chunk;
      square += addTo(sum, vectors, end * dimensions, weight);
      weights += weight;
      const cut = end === count - 1 ? 0 : (pieces.costs[until + 1] ?? 0);
      const scatter = weights - Math.sqrt(Math.max(0, square));
      const whole = CHUNK_COST + SCATTER_COST * scatter + cut + (cost[end + 1] ?? 0);
      if (whole < best) {
        best = whole;
        last[beginPiece] = until;
      }
    }
    cost[begin] = best;
  }
  return last;
}

/** Adds a weighted vector to a sum; returns the increase of the sum's squared length. */
function addTo(sum: Float64Array, vectors: Float32Array, from: number, weight: number): number {
  let grown = 0;
  for (let at = 0; at < sum.length; at++) {
    const value = weight * (vectors[from + at] ?? 0);
    const before = sum[at] ?? 0;
    grown += value * (2 * before + value);
    sum[at] = before + value;
  }
  return grown;
}
