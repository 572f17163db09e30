import type { Settings } from "../../wire/primitives.ts";
import { chunkRecursive } from "./chunk/recursive.ts";
import { chunkSections } from "./chunk/sections.ts";
import { chunkSemantic } from "./chunk/semantic.ts";
import type { Meaning } from "./chunk/semantic.ts";
import type { Span } from "./chunk/span.ts";
import { unitRanges } from "./chunk/units.ts";
import type { Range } from "./chunk/units.ts";

/** A text to split. Above `unitsMax` units it is too long for a model. */
export interface ChunkInput {
  readonly text: string;
  readonly settings: Settings;
  readonly unitsMax: number;
}

/** Chunking methods, callable in place and in the chunking worker with the same result. */
export const CHUNK_METHODS = {
  recursive: ({ text, settings }: ChunkInput): readonly Span[] => chunkRecursive(text, settings),
  /** Returns the units to embed; undefined if there would be more than `unitsMax`. */
  units: ({ text, settings, unitsMax }: ChunkInput): readonly Range[] | undefined =>
    unitRanges(text, settings, unitsMax),
  /** `meaning` belongs to the units that the same `unitsMax` yields. */
  semantic: ({ text, settings, unitsMax, meaning }: ChunkInput & { readonly meaning: Meaning }) =>
    chunkSemantic(text, settings, unitsMax, meaning),
  /** `begins` holds the numbers of the units that start a section. */
  sections: ({ text, settings, unitsMax, begins }: ChunkInput & { readonly begins: readonly number[] }) =>
    chunkSections(text, settings, unitsMax, begins),
};

export type ChunkMethods = typeof CHUNK_METHODS;
