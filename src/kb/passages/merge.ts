import { joinRanges, type PieceRange } from "./pieces.ts";

/** Merges ranges that overlap or touch. The order does not matter; the result ascends. Pure. */
export function mergeTouching(ranges: readonly PieceRange[]): PieceRange[] {
  const merged: PieceRange[] = [];
  for (const range of ranges.toSorted((a, b) => a.first - b.first || a.last - b.last)) {
    const last = merged.at(-1);
    if (last !== undefined && range.first <= last.last + 1)
      merged[merged.length - 1] = joinRanges(last, range);
    else merged.push(range);
  }
  return merged;
}
