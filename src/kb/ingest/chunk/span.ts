import type { Settings } from "../../../wire/primitives.ts";
import type { Span } from "../../store/chunks.ts";

export type { Span } from "../../store/chunks.ts";

/** Returns the text of a chunk: its part of the document between the repeated head and tail. */
export function chunkText(text: string, { start, end, before = "", after = "" }: Span): string {
  return before + text.slice(start, end) + after;
}

/**
 * Splits a text. Laws (property-tested): spans ascend by start and by end; none exceeds `chunkSize`, repeated parts included; none
 * is blank; every non-space character lies in a span; no surrogate pair is split; equal input gives equal output.
 */
export type Chunker = (text: string, settings: Settings) => readonly Span[];
