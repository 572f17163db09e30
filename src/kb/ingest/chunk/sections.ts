import type { Settings } from "../../../wire/primitives.ts";
import { outlineOf } from "./outline.ts";
import { sizesOf } from "./pieces.ts";
import { planChunks } from "./plan.ts";
import type { Span } from "./span.ts";
import { spansOf } from "./spans.ts";
import { unitsOf } from "./units.ts";

/** One more cut leaves all others possible, so a cut that pays for its chunk and more is in every best plan. */
const FORCED_COST = -1000;

/**
 * Splits a text before given units, each of which begins a section, and sections that are longer than a chunk at their
 * own joints. A section always begins a chunk, which shares the overlap with the one before as any other does. The laws
 * of a chunker hold whatever numbers are given.
 */
export function chunkSections(
  text: string,
  settings: Settings,
  unitsMax: number,
  begins: readonly number[],
): readonly Span[] {
  const sizes = sizesOf(settings.chunkSize, settings.chunkOverlap);
  const outline = outlineOf(text, sizes);
  const units = unitsOf(outline.pieces, sizes, unitsMax) ?? [];
  const costs = [...outline.pieces.costs];
  for (const unit of begins) {
    const piece = units[unit];
    if (piece !== undefined) costs[piece] = FORCED_COST;
  }
  return spansOf(text, outline, sizes, planChunks({ ...outline.pieces, costs }, sizes));
}
