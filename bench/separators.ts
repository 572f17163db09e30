import type { Span } from "../src/kb/ingest/chunk/span.ts";

/** What the usual recursive splitters divide at, the first ones preferred. */
const SEPARATORS = ["\n\n", "\n", ".", "?", "!", " "] as const;

/**
 * The usual recursive splitter, as a yardstick: divide at the first separator that occurs, each part beginning with
 * it, divide what is still too long at the next one, and join neighbours as long as they fit. No overlap.
 */
export function splitAtSeparators(text: string, size: number): readonly Span[] {
  return divide(text, 0, text.length, size, 0)
    .map(({ start, end }) => trimmed(text, start, end))
    .filter(({ start, end }) => start < end);
}

function divide(text: string, from: number, to: number, size: number, level: number): Span[] {
  let separator: string | undefined;
  let next = level;
  while (next < SEPARATORS.length && separator === undefined) {
    const candidate = SEPARATORS[next++] ?? "";
    const at = text.indexOf(candidate, from);
    if (at >= 0 && at < to) separator = candidate;
  }
  const parts = separator === undefined ? pieces(from, to, size) : splitAt(text, from, to, separator);
  const spans: Span[] = [];
  let open: { start: number; end: number } | undefined;
  const flush = (): void => {
    if (open !== undefined) spans.push({ ...open, headings: [] });
    open = undefined;
  };
  for (const [start, end] of parts) {
    if (end - start > size) {
      flush();
      spans.push(...divide(text, start, end, size, next));
      continue;
    }
    if (open !== undefined && end - open.start > size) flush();
    if (open === undefined) open = { start, end };
    else open.end = end;
  }
  flush();
  return spans;
}

function splitAt(text: string, from: number, to: number, separator: string): [number, number][] {
  const parts: [number, number][] = [];
  let start = from;
  for (let at = text.indexOf(separator, from + 1); at >= 0 && at < to; at = text.indexOf(separator, at + 1)) {
    parts.push([start, at]);
    start = at;
  }
  parts.push([start, to]);
  return parts;
}

function pieces(from: number, to: number, size: number): [number, number][] {
  const parts: [number, number][] = [];
  for (let start = from; start < to; start += size) parts.push([start, Math.min(to, start + size)]);
  return parts;
}

function trimmed(text: string, from: number, to: number): Span {
  let start = from;
  let end = to;
  while (start < end && /\s/.test(text[start] ?? "")) start++;
  while (end > start && /\s/.test(text[end - 1] ?? "")) end--;
  return { start, end, headings: [] };
}
