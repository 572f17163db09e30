/** Lines of JSON that people laid out are shorter than this on the average. */
const LINE_CHARS = 500;
/** Deeper values are not indented further: spaces would be all there is. */
const INDENT_MAX = 8;
/** Line breaks and indents may make the text so many times as long; lists of nothing but lists would grow further. */
const GROWTH_MAX = 4;

/**
 * Puts line breaks and indents into JSON that has none, and changes nothing else: numbers of any length, escapes and the
 * order of keys stay as they are written. Undefined for what is no JSON, has lines already, or would grow too much.
 */
export function layOutJson(text: string): string | undefined {
  const trimmed = text.trim();
  if (!/^[[{]/.test(trimmed) || trimmed.length / (trimmed.split("\n", 1000).length || 1) < LINE_CHARS)
    return undefined;
  try {
    JSON.parse(trimmed);
  } catch {
    return undefined;
  }
  const charsMax = trimmed.length * GROWTH_MAX;
  let written = "";
  let depth = 0;
  let before = "";
  for (let at = 0; at < trimmed.length;) {
    const sign = trimmed[at] ?? "";
    // White space between values is dropped.
    if (SPACES.has(sign)) {
      at += 1;
      continue;
    }
    const closes = sign === "}" || sign === "]";
    if (closes) depth -= 1;
    // A list or object that holds nothing stays in one line.
    if (before === "," || closes !== (before === "{" || before === "["))
      written += LINE_BREAKS[Math.min(depth, INDENT_MAX)];
    if (sign === "{" || sign === "[") depth += 1;
    const end = tokenEnd(trimmed, at, sign);
    written += sign === ":" ? ": " : trimmed.slice(at, end);
    at = end;
    before = sign;
    if (written.length > charsMax) return undefined;
  }
  return written;
}

const LINE_BREAKS = Array.from({ length: INDENT_MAX + 1 }, (_, depth) => `\n${"  ".repeat(depth)}`);
const SPACES = new Set(" \t\r\n");
const STRUCTURE = new Set("{}[]:,");

/** Where a string, another value, or a single sign of structure ends; `text` is valid JSON. */
function tokenEnd(text: string, start: number, sign: string): number {
  let at = start + 1;
  if (STRUCTURE.has(sign)) return at;
  if (sign === '"') {
    while (at < text.length && text[at] !== '"') at += text[at] === "\\" ? 2 : 1;
    return at + 1;
  }
  for (let next = text[at] ?? ","; !STRUCTURE.has(next) && !SPACES.has(next); next = text[at] ?? ",") at += 1;
  return at;
}
