import type { Settings } from "../../../wire/primitives.ts";
import type { Span } from "../../store/records.ts";

export type { Span } from "../../store/records.ts";

/** A chunk as it is read: its part of the text between what it repeats. */
export function chunkText(text: string, { start, end, before = "", after = "" }: Span): string {
  return before + text.slice(start, end) + after;
}

/**
 * Splits a text. Laws (property-tested): spans ascend by start and by end; none is longer than `chunkSize`, what it repeats
 * included; none is blank; every character that is not white space lies in some span; a surrogate pair is never cut; equal input gives
 * equal output.
 */
export type Chunker = (text: string, settings: Settings) => readonly Span[];
