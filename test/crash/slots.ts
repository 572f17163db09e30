import { Tier } from "../../src/wire/primitives.ts";

/** Chunk size that the documents are made for: each paragraph becomes a chunk of its own. */
export const CHUNK_CHARS = 200;
/** Most results of a search. */
export const TOP_K = 100;

/** A document that one client makes, changes and deletes; its texts follow from its number and its edition. */
export interface Slot {
  readonly number: number;
  readonly tier: Tier;
  /** Made of an uploaded file, and not of content. */
  readonly isFile: boolean;
  /** Undefined: there is none, as far as is known. */
  id: string | undefined;
  /** Edition that was acknowledged last; 0: none, or deleted. */
  edition: number;
  /** Edition that an operation without an answer would have brought; 0: gone. Undefined: nothing is open. */
  open: number | undefined;
  /** Editions made so far: each has a number of its own. */
  made: number;
}

export function openSlots(count: number): Slot[] {
  return Array.from({ length: count }, (_, number) => ({
    number,
    tier: Tier.options[number % Tier.options.length] ?? "fastest",
    isFile: number % 4 === 3,
    id: undefined,
    edition: 0,
    open: undefined,
    made: 0,
  }));
}

/** Paragraphs of an edition: mostly a few, sometimes hundreds, which are chunked in another thread. */
export function paragraphsOf(slot: number, edition: number): number {
  const mixed = Math.imul(slot * 7919 + edition, 0x9e3779b1) >>> 0;
  return mixed % 23 === 0 ? 420 + (mixed % 100) : 1 + (mixed % 40);
}

/** A word that stands in every paragraph of an edition and nowhere else. */
export function markerOf(slot: number, edition: number): string {
  return `slot${slot}edition${edition}x`;
}

export function textOf(slot: number, edition: number): string {
  const marker = markerOf(slot, edition);
  return Array.from({ length: paragraphsOf(slot, edition) }, (_, at) =>
    `The moon in part ${at} of ${marker} `.padEnd(CHUNK_CHARS - 40, "pulls the sea and tells nobody "),
  )
    .map((paragraph) => paragraph.trimEnd())
    .join("\n\n");
}

export function titleOf(slot: number): string {
  return `Slot ${slot}`;
}

/** The edition that a passage is of; undefined: of no slot's. */
export function editionIn(passage: string): { readonly slot: number; readonly edition: number } | undefined {
  const [, slot, edition] = /\bslot(\d+)edition(\d+)x\b/.exec(passage) ?? [];
  return slot === undefined ? undefined : { slot: Number(slot), edition: Number(edition) };
}
