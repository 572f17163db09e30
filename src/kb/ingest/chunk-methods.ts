import type { Settings } from "../../wire/primitives.ts";
import { chunkRecursive } from "./chunk/recursive.ts";
import { chunkSections } from "./chunk/sections.ts";
import { chunkSemantic } from "./chunk/semantic.ts";
import type { Meaning } from "./chunk/semantic.ts";
import type { Span } from "./chunk/span.ts";
import { unitRanges } from "./chunk/units.ts";
import type { Range } from "./chunk/units.ts";

interface Asked {
  readonly text: string;
  readonly settings: Settings;
}

/** What can be done with a text, here or in the chunking worker: the same either way. */
export const CHUNK_METHODS = {
  recursive: ({ text, settings }: Asked): readonly Span[] => chunkRecursive(text, settings),
  /** The parts whose meaning is to be looked at; undefined where there would be more than `unitsMax`. */
  units: ({
    text,
    settings,
    unitsMax,
  }: Asked & { readonly unitsMax: number }): readonly Range[] | undefined =>
    unitRanges(text, settings, unitsMax),
  /** `meaning` is of the units, which `unitsMax` tells again. */
  semantic: ({
    text,
    settings,
    unitsMax,
    meaning,
  }: Asked & { readonly unitsMax: number; readonly meaning: Meaning }) =>
    chunkSemantic(text, settings, unitsMax, meaning),
  /** `begins` are the numbers of the units that begin a section. */
  sections: ({
    text,
    settings,
    unitsMax,
    begins,
  }: Asked & { readonly unitsMax: number; readonly begins: readonly number[] }) =>
    chunkSections(text, settings, unitsMax, begins),
};

export type ChunkMethods = typeof CHUNK_METHODS;
