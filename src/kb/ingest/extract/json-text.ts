/** JSON that was formatted for people has shorter lines on average. */
const LINE_CHARS = 500;
/** Deeper values are not indented further; otherwise the text would be mostly spaces. */
const INDENT_MAX = 8;
/** Lists and objects up to this length stay on one line, so that a search finds a record with the names of its values. */
const RECORD_CHARS = 240;
/** Largest growth of the text by line breaks and indents; nested empty lists would grow more. */
const GROWTH_MAX = 4;

/**
 * Adds line breaks and indents to one-line JSON and changes nothing else: numbers of any length, escapes and the order of keys stay as
 * written. Undefined: the text is no JSON, has lines already, or would grow too much.
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
    // An empty list or object stays on one line.
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

/** Returns the start and end of each non-empty list and object that fits on a line. */
function recordEnds(json: string): ReadonlyMap<number, number> {
  const ends = new Map<number, number>();
  const open: number[] = [];
  for (let at = 0; at < json.length;) {
    const sign = json[at] ?? "";
    const end = SPACES.has(sign) ? at + 1 : tokenEnd(json, at, sign);
    if (sign === "{" || sign === "[") open.push(at);
    if (sign === "}" || sign === "]") {
      const start = open.pop() ?? at;
      if (end - start <= RECORD_CHARS) ends.set(start, end);
    }
    at = end;
  }
  return ends;
}

/** Writes a part of JSON on one line, with single spaces after colons and commas. */
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

/** Returns the end of the token at `start`: a string, another value or a structural character. `text` is valid JSON. */
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
