import { CHUNK_COST } from "./costs.ts";
import { afterPiece, beforePiece } from "./pieces.ts";
import type { Pieces, Sizes } from "./pieces.ts";

/**
 * Returns the smallest start of a chunk whose first own piece is `index`: the full overlap before it, or less if a heading or fence
 * lies between or the piece itself needs the space. Equals the piece's start if nothing can be shared.
 */
export function earliestBegin(pieces: Pieces, sizes: Sizes, index: number): number {
  const own = pieces.begins[index] ?? 0;
  if (index === 0 || sizes.overlap === 0) return own;
  const shared = pieces.ends[index - 1] ?? 0;
  const needed = framedEnd(pieces, index) + beforePiece(pieces, index).length - sizes.chunk;
  const begin = Math.max(shared - sizes.overlap, needed, pieces.floors[index] ?? 0);
  return begin >= shared ? own : Math.max(begin, 0);
}

/** Returns the largest end of a chunk that starts with piece `index`, measured like `framedEnd`. */
export function latestEnd(pieces: Pieces, sizes: Sizes, index: number): number {
  return earliestBegin(pieces, sizes, index) + sizes.chunk - beforePiece(pieces, index).length;
}

/** Returns the end of a chunk whose last piece is `index`, plus the length of its repeated tail. */
export function framedEnd(pieces: Pieces, index: number): number {
  return (pieces.ends[index] ?? 0) + afterPiece(pieces, index).length;
}

/**
 * Returns for each piece the last piece of the chunk that would start with it in the cheapest plan; prefers a fuller first chunk
 * on a tie. The chunks are then 0 … last[0], last[0]+1 … last[last[0]+1], and so on.
 *
 * Works backwards: cost(i) = CHUNK_COST + min over j of (cut before j+1) + cost(j+1), where pieces i … j fit. A monotonic queue
 * yields the minimum over that sliding window, so the time is linear in the number of pieces. (A chunk that repeats the head of a
 * table has less space than one that starts before it: for the latter a longer chunk may be missed, by the length of the head.)
 */
export function planChunks(pieces: Pieces, sizes: Sizes): Int32Array {
  const count = pieces.begins.length;
  const last = new Int32Array(count);
  const restCost = new Float64Array(count); // cheapest plan after piece i, with the cut after it
  const queue = new Int32Array(count); // candidates for j, falling; their costs rise from head to tail
  let head = 0;
  let tail = 0;
  let planCost = 0; // cost(i + 1)
  for (let index = count - 1; index >= 0; index--) {
    const rest = index === count - 1 ? 0 : (pieces.costs[index + 1] ?? 0) + planCost;
    restCost[index] = rest;
    while (tail > head && (restCost[queue[tail - 1] ?? 0] ?? 0) > rest) tail--;
    queue[tail++] = index;
    const limit = latestEnd(pieces, sizes, index);
    while (tail - head > 1 && framedEnd(pieces, queue[head] ?? 0) > limit) head++;
    const best = queue[head] ?? 0;
    last[index] = best;
    planCost = CHUNK_COST + (restCost[best] ?? 0);
  }
  return last;
}
