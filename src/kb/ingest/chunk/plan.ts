import { CHUNK_COST } from "./costs.ts";
import { afterPiece, beforePiece } from "./pieces.ts";
import type { Pieces, Sizes } from "./pieces.ts";

/**
 * The least offset at which a chunk may begin whose first own piece is `index`: the full overlap before it, less where a
 * heading or fence parts the two, or the piece itself needs the room. Equal to the piece's begin where nothing can be shared.
 */
export function earliestBegin(pieces: Pieces, sizes: Sizes, index: number): number {
  const own = pieces.begins[index] ?? 0;
  if (index === 0 || sizes.overlap === 0) return own;
  const shared = pieces.ends[index - 1] ?? 0;
  const needed = framedEnd(pieces, index) + beforePiece(pieces, index).length - sizes.chunk;
  const begin = Math.max(shared - sizes.overlap, needed, pieces.floors[index] ?? 0);
  return begin >= shared ? own : Math.max(begin, 0);
}

/** Where a chunk has to end that begins with piece `index`, as `framedEnd` counts. */
export function latestEnd(pieces: Pieces, sizes: Sizes, index: number): number {
  return earliestBegin(pieces, sizes, index) + sizes.chunk - beforePiece(pieces, index).length;
}

/** Where a chunk ends whose last piece is `index`, with what it repeats there. */
export function framedEnd(pieces: Pieces, index: number): number {
  return (pieces.ends[index] ?? 0) + afterPiece(pieces, index).length;
}

/**
 * For each piece the last piece of the chunk that would begin with it, in the plan of least cost; of two equal ones
 * the fuller first chunk. The chunks are then 0 … last[0], last[0]+1 … last[last[0]+1], and so on.
 *
 * Works from the end: cost(i) = CHUNK_COST + min over j of (cut before j+1) + cost(j+1), where pieces i … j fit.
 * The minimum over that sliding window comes from a queue that keeps only candidates that can still win, so the
 * whole takes time linear in the number of pieces. (A chunk that repeats the head of a table has less room than one that
 * begins before it: of the latter a longer chunk may be missed, by as much as the head is long.)
 */
export function planChunks(pieces: Pieces, sizes: Sizes): Int32Array {
  const count = pieces.begins.length;
  const last = new Int32Array(count);
  const restCost = new Float64Array(count); // cheapest plan for what follows piece i, the cut after it included
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
