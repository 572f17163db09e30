import type { Settings } from "../../../wire/primitives.ts";
import { outlineOf } from "./outline.ts";
import { sizesOf } from "./pieces.ts";
import { planChunks } from "./plan.ts";
import type { Span } from "./span.ts";
import { spansOf } from "./spans.ts";
import { unitsOf } from "./units.ts";

/** A cut rules out no other cut, so one with a negative cost beyond `CHUNK_COST` is part of every optimal plan. */
const FORCED_COST = -1000;

/**
 * Splits a text before the given units, each of which starts a section, and splits sections longer than a chunk along their
 * structure. A section always starts a chunk, which shares the overlap like any other. The laws of a chunker hold for any numbers.
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
