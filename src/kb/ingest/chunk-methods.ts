import type { Settings } from "../../wire/primitives.ts";
import { chunkRecursive } from "./chunk/recursive.ts";
import { chunkSections } from "./chunk/sections.ts";
import { chunkSemantic } from "./chunk/semantic.ts";
import type { Meaning } from "./chunk/semantic.ts";
import type { Span } from "./chunk/span.ts";
import { unitRanges } from "./chunk/units.ts";
import type { Range } from "./chunk/units.ts";

interface Input {
  readonly text: string;
  readonly settings: Settings;
}

/** Chunking methods, callable in place and in the chunking worker with the same result. */
export const CHUNK_METHODS = {
  recursive: ({ text, settings }: Input): readonly Span[] => chunkRecursive(text, settings),
  /** Returns the units to embed; undefined if there would be more than `unitsMax`. */
  units: ({
    text,
    settings,
    unitsMax,
  }: Input & { readonly unitsMax: number }): readonly Range[] | undefined =>
    unitRanges(text, settings, unitsMax),
  /** `meaning` belongs to the units that the same `unitsMax` yields. */
  semantic: ({
    text,
    settings,
    unitsMax,
    meaning,
  }: Input & { readonly unitsMax: number; readonly meaning: Meaning }) =>
    chunkSemantic(text, settings, unitsMax, meaning),
  /** `begins` holds the numbers of the units that start a section. */
  sections: ({
    text,
    settings,
    unitsMax,
    begins,
  }: Input & { readonly unitsMax: number; readonly begins: readonly number[] }) =>
    chunkSections(text, settings, unitsMax, begins),
};

export type ChunkMethods = typeof CHUNK_METHODS;
