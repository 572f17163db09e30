import type { Settings } from "../../../wire/primitives.ts";
import { skipSpace, trimSpace } from "./characters.ts";
import { outlineOf } from "./outline.ts";
import { sizesOf } from "./pieces.ts";
import { planChunks } from "./plan.ts";
import type { Chunker, Span } from "./span.ts";
import { spansOf } from "./spans.ts";

/**
 * Splits a text along its structure: headings before blocks, blocks before list items, table rows and lines, these before
 * sentences, words and characters. Fills chunks as far as good cuts allow. Consecutive chunks share up to `chunkOverlap` units, from
 * the start of a sentence, line or word. Time and memory are linear in the text and the number of chunks. At a `chunkSize` of 1, a
 * surrogate pair is a chunk of 2, because a split would destroy it.
 */
export const chunkRecursive: Chunker = (text: string, settings: Settings): readonly Span[] => {
  const begin = skipSpace(text, 0, text.length);
  const end = trimSpace(text, begin, text.length);
  if (begin === end) return [];
  if (end - begin <= settings.chunkSize) return [{ start: begin, end, headings: [] }];

  const sizes = sizesOf(settings.chunkSize, settings.chunkOverlap);
  const outline = outlineOf(text, sizes);
  return spansOf(text, outline, sizes, planChunks(outline.pieces, sizes));
};
