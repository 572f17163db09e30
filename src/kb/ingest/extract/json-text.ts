/** Lines of JSON that people laid out are shorter than this on the average. */
const LINE_CHARS = 500;
/** Deeper values are not indented further: spaces would be all there is. */
const INDENT_MAX = 8;
/** Lists and objects up to this long stay in one line: a record with the names of its values is found as a whole. */
const RECORD_CHARS = 240;
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
  const records = recordEnds(trimmed);
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
    const recordEnd = records.get(at);
    if (recordEnd !== undefined && depth > 0) {
      if (before !== ":") written += LINE_BREAKS[Math.min(depth, INDENT_MAX)];
      written += inOneLine(trimmed, at, recordEnd);
      at = recordEnd;
      before = "}";
      if (written.length > charsMax) return undefined;
      continue;
    }
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

/** Where each list and object begins that holds something and fits into a line, and where it ends. */
function recordEnds(json: string): ReadonlyMap<number, number> {
  const ends = new Map<number, number>();
  const open: number[] = [];
  for (let at = 0; at < json.length;) {
    const sign = json[at] ?? "";
    const end = SPACES.has(sign) ? at + 1 : tokenEnd(json, at, sign);
    if (sign === "{" || sign === "[") open.push(at);
    if (sign === "}" || sign === "]") {
      const begin = open.pop() ?? at;
      if (end - begin <= RECORD_CHARS) ends.set(begin, end);
    }
    at = end;
  }
  return ends;
}

/** A part of JSON with single spaces behind colons and commas, and no other white space. */
function inOneLine(json: string, from: number, to: number): string {
  let written = "";
  for (let at = from; at < to;) {
    const sign = json[at] ?? "";
    if (SPACES.has(sign)) {
      at += 1;
      continue;
    }
    const end = tokenEnd(json, at, sign);
    written += json.slice(at, end) + (sign === ":" || sign === "," ? " " : "");
    at = end;
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
