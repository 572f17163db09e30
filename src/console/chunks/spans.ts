/** A chunk's range of a text: UTF-16 offsets, end exclusive. */
export interface ChunkRange {
  readonly start: number;
  readonly end: number;
}

/** A piece of a text that the same chunks cover. */
export interface Piece extends ChunkRange {
  /** Numbers of the chunks that begin here, from 0. */
  readonly begins: readonly number[];
  /** Numbers of the chunks that cover it: none between chunks, two where they overlap. */
  readonly chunks: readonly number[];
}

/** Cuts a text of `length` at every boundary of its chunks, which are in order. Up to `until`, as longer texts are shown in parts. */
export function piecesOf(chunks: readonly ChunkRange[], length: number, until = length): readonly Piece[] {
  const end = Math.min(length, until);
  const cuts = new Set([0, end]);
  for (const chunk of chunks) {
    if (chunk.start < end) cuts.add(chunk.start);
    if (chunk.end < end) cuts.add(chunk.end);
  }
  const at = [...cuts].toSorted((a, b) => a - b);
  const pieces: Piece[] = [];
  let first = 0;
  for (const [index, start] of at.entries()) {
    const next = at[index + 1];
    if (next === undefined || next === start) continue;
    while ((chunks[first]?.end ?? Infinity) <= start) first += 1;
    const covering: number[] = [];
    for (let number = first; (chunks[number]?.start ?? Infinity) <= start; number += 1)
      if ((chunks[number]?.end ?? 0) > start) covering.push(number);
    const begins = covering.filter((number) => chunks[number]?.start === start);
    pieces.push({ start, end: next, begins, chunks: covering });
  }
  return pieces;
}
