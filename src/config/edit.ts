import { withoutComments } from "./comments.ts";

/** A part of a text, from one index up to another. */
interface Span {
  readonly start: number;
  readonly end: number;
}

/**
 * Adds a source to the text of a configuration that has been checked. Everything else stays as it is, comments and layout
 * included. Pure.
 */
export function withSource(text: string, source: object): string {
  const entry = `    ${JSON.stringify(source, undefined, 1).replaceAll(/\n\s*/g, " ")}`;
  const plain = withoutComments(text);
  const list = sourcesOf(plain);
  if (list === undefined) return inserted(text, plain.indexOf("{") + 1, `\n  "sources": [\n${entry},\n  ],`);
  const last = itemsOf(plain, list).at(-1);
  if (last === undefined) return inserted(text, list.start + 1, `\n${entry},\n  `);
  // After the rest of the item's line, so that a comment there stays with its item.
  const rest = /^\s*,[^\n]*\n/.exec(text.slice(last.end))?.[0];
  if (rest !== undefined && isBlank(plain, last.end, last.end + rest.length))
    return inserted(text, last.end + rest.length, `${entry},\n`);
  return inserted(text, last.end, `,\n${entry}`);
}

/** Removes the source of this number, counted from 0, from the text of a configuration that has been checked. Pure. */
export function withoutSource(text: string, index: number): string {
  const plain = withoutComments(text);
  const list = sourcesOf(plain);
  const items = list === undefined ? [] : itemsOf(plain, list);
  const item = items[index];
  if (item === undefined) return text;
  const indent = /\n[ \t]*$/.exec(text.slice(0, item.start))?.[0].length ?? 0;
  const comma = /^\s*,/.exec(text.slice(item.end))?.[0].length;
  if (comma !== undefined) return cut(text, item.start - indent, item.end + comma);
  // The last one: the comma before it goes too, for programs that take no trailing one.
  const before = index === 0 ? -1 : plain.lastIndexOf(",", item.start);
  const shorter = cut(text, item.start - indent, item.end);
  return before < (items[index - 1]?.end ?? text.length) ? shorter : cut(shorter, before, before + 1);
}

/** The value of the top-level key `sources`; undefined: there is none. `plain` is JSON without comments. */
function sourcesOf(plain: string): Span | undefined {
  for (let at = plain.indexOf("{") + 1; ;) {
    at = tokenStart(plain, at);
    if (plain[at] !== '"') return undefined;
    const keyEnd = valueEnd(plain, at);
    const start = tokenStart(plain, plain.indexOf(":", keyEnd) + 1);
    const end = valueEnd(plain, start);
    if (JSON.parse(plain.slice(at, keyEnd)) === "sources") return { start, end };
    at = end;
  }
}

/** The items of an array. */
function itemsOf(plain: string, list: Span): Span[] {
  const items: Span[] = [];
  for (let at = tokenStart(plain, list.start + 1); at < list.end - 1; at = tokenStart(plain, at)) {
    const end = valueEnd(plain, at);
    items.push({ start: at, end });
    at = end;
  }
  return items;
}

/** The next character that is neither space nor a comma. */
function tokenStart(plain: string, at: number): number {
  const next = plain.slice(at).search(/[^\s,]/);
  return next === -1 ? plain.length : at + next;
}

/** The end of the value that starts here. */
function valueEnd(plain: string, start: number): number {
  let depth = 0;
  for (const { 0: token, index } of plain
    .slice(start)
    .matchAll(/"(?:[^"\\]|\\[^])*"|[[\]{}]|[^\s,:"[\]{}]+/g)) {
    if (token === "[" || token === "{") depth += 1;
    else if (token === "]" || token === "}") depth -= 1;
    if (depth === 0) return start + index + token.length;
  }
  return plain.length;
}

function isBlank(plain: string, start: number, end: number): boolean {
  return /^[\s,]*$/.test(plain.slice(start, end));
}

function inserted(text: string, at: number, what: string): string {
  return text.slice(0, at) + what + text.slice(at);
}

function cut(text: string, start: number, end: number): string {
  return text.slice(0, start) + text.slice(end);
}
