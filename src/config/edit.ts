import { withoutComments } from "./config-file.ts";

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
  const entry = `    ${spaced(source)}`;
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
  return list === undefined ? text : withoutItem(text, plain, itemsOf(plain, list), index);
}

/**
 * Sets the local embedding model in the text of a configuration that has been checked. Everything else stays as it is, comments
 * and layout included. Pure.
 */
export function withModel(text: string, model: string): string {
  const plain = withoutComments(text);
  return withMember(text, plain, plain.indexOf("{"), ["kb", "embedding", "model"], model);
}

/** Sets a member, by its path from the object that starts here. */
function withMember(
  text: string,
  plain: string,
  start: number,
  [key = "", ...deeper]: readonly string[],
  value: unknown,
): string {
  const members = membersOf(plain, start);
  const known = members.find((member) => member.key === key);
  if (known !== undefined && deeper.length > 0)
    return withMember(text, plain, known.value.start, deeper, value);
  const nested = deeper.reduceRight((inner, name) => ({ [name]: inner }), value);
  const member = `${JSON.stringify(key)}: ${spaced(nested)}`;
  if (known !== undefined) return inserted(cut(text, known.start, known.end), known.start, member);
  const indent = /^\s*?\n[ \t]*/.exec(text.slice(start + 1))?.[0] ?? " ";
  // On a line of its own with a comma even if it is the last one: what a comment offers below it can be taken into use.
  const end = members.length === 0 && !indent.includes("\n") ? " " : ",";
  return inserted(text, start + 1, `${indent}${member}${end}`);
}

/** Removes one of the items of an array or an object, with its comma. */
function withoutItem(text: string, plain: string, items: readonly Span[], index: number): string {
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
  return membersOf(plain, plain.indexOf("{")).find(({ key }) => key === "sources")?.value;
}

/** The members of the object that starts here. */
function membersOf(plain: string, start: number): (Span & { readonly key: unknown; readonly value: Span })[] {
  const members = [];
  for (let at = tokenStart(plain, start + 1); plain[at] === '"'; at = tokenStart(plain, at)) {
    const keyEnd = valueEnd(plain, at);
    const valueStart = tokenStart(plain, plain.indexOf(":", keyEnd) + 1);
    const value = { start: valueStart, end: valueEnd(plain, valueStart) };
    members.push({ start: at, end: value.end, key: JSON.parse(plain.slice(at, keyEnd)) as unknown, value });
    at = value.end;
  }
  return members;
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

/** Writes JSON on one line, with spaces. */
export function spaced(value: unknown): string {
  return JSON.stringify(value, undefined, 1).replaceAll(/\n\s*/g, " ");
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
