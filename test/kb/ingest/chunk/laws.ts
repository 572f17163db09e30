import { expect } from "vitest";
import type { Span } from "../../../../src/kb/ingest/chunk/span.ts";
import type { Settings } from "../../../../src/wire/primitives.ts";

/** Settings for a chunker under test. */
export function settings(chunkSize: number, chunkOverlap: number): Settings {
  return { strategy: "recursive", chunkSize, chunkOverlap };
}

/** Checks the laws of `Chunker` and of the overlap on one answer. Every chunker's property test runs this. */
export function expectLawful(text: string, asked: Settings, spans: readonly Span[]): void {
  let before: Span | undefined;
  for (const span of spans) {
    const broken = brokenLaw(text, asked, span, before);
    if (broken !== undefined) {
      const { start, end } = span;
      expect.fail(`[${start}, ${end}) ${JSON.stringify(text.slice(start, end).slice(0, 80))} ${broken}`);
    }
    before = span;
  }
  expect(text.slice(before?.end ?? 0).trim(), "text behind the last span is lost").toBe("");
}

function brokenLaw(text: string, asked: Settings, span: Span, before: Span | undefined): string | undefined {
  const { start, end, before: repeated = "", after = "" } = span;
  if (start < 0 || end > text.length || start >= end) return "does not lie in the text";
  if (text.slice(start, end).trim() === "") return "is blank";
  // A pair cannot be cut, so it alone may be longer than one unit.
  const isPair = end - start === 2 && cutsPair(text, start + 1);
  const length = repeated.length + end - start + after.length;
  if (length > asked.chunkSize && !isPair) return `is longer than ${asked.chunkSize}`;
  if (!text.slice(0, start).includes(repeated.trimEnd())) return "repeats what does not stand before it";
  if (cutsPair(text, start) || cutsPair(text, end)) return "cuts a surrogate pair";
  const covered = before?.end ?? 0;
  if (text.slice(covered, start).trim() !== "") return `loses ${JSON.stringify(text.slice(covered, start))}`;
  if (before === undefined) return undefined;
  if (start <= before.start || end <= before.end) return "does not ascend";
  return covered - start > asked.chunkOverlap ? `shares more than ${asked.chunkOverlap}` : undefined;
}

function cutsPair(text: string, at: number): boolean {
  return isBetween(text.charCodeAt(at - 1), 0xd800, 0xdbff) && isBetween(text.charCodeAt(at), 0xdc00, 0xdfff);
}

function isBetween(code: number, lowest: number, highest: number): boolean {
  return code >= lowest && code <= highest;
}
