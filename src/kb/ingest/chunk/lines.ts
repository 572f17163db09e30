import { isSpace, skipSpace } from "./characters.ts";

/** Kind of a line by its first characters, without its context. */
export type LineKind = "heading" | "fence" | "rule" | "item" | "row" | "quote" | "text";

/** Indentation from which a line is code rather than the start of a block (CommonMark). */
export const CODE_INDENT = 4;

const HEADING_LEVEL_MAX = 6;
/** CommonMark's bound on the digits of an ordered list's number. */
const NUMBER_DIGITS_MAX = 9;

/** The kind of the line whose text without white space is `[begin, end)`; never blank. */
export function lineKind(text: string, begin: number, end: number): LineKind {
  const code = text.charCodeAt(begin);
  switch (code) {
    case 0x23: // #
      return headingLevel(text, begin, end) > 0 ? "heading" : "text";
    case 0x60: // `
    case 0x7e: // ~
      return fenceLength(text, begin, end) > 0 ? "fence" : "text";
    case 0x2a: // *
    case 0x2d: // -
    case 0x5f: // _
      if (isRule(text, begin, end)) return "rule";
      return code !== 0x5f && isGap(text, begin + 1, end) ? "item" : "text";
    case 0x2b: // +
      return isGap(text, begin + 1, end) ? "item" : "text";
    case 0x7c: // |
      return "row";
    case 0x3e: // >
      return "quote";
    default:
      return isDigit(code) && isNumbered(text, begin, end) ? "item" : "text";
  }
}

/** The level of an ATX heading (1–6), 0 for anything else. */
export function headingLevel(text: string, begin: number, end: number): number {
  const level = runLength(text, begin, end, 0x23);
  return level <= HEADING_LEVEL_MAX && isGap(text, begin + level, end) ? level : 0;
}

/** Returns the number of fence characters that open a code block; 0 if the line opens none. */
export function fenceLength(text: string, begin: number, end: number): number {
  const code = text.charCodeAt(begin);
  const length = runLength(text, begin, end, code);
  if (length < 3) return 0;
  // ```inline``` is no fence: what follows backticks may hold no further one.
  if (code === 0x60 && hasBacktick(text, begin + length, end)) return 0;
  return length;
}

/** Whether the line closes a fence of `length` times `code`. */
export function closesFence(text: string, begin: number, end: number, code: number, length: number): boolean {
  if (text.charCodeAt(begin) !== code) return false;
  const run = runLength(text, begin, end, code);
  return run >= length && begin + run === end;
}

/** The level that a line under a one-line paragraph gives it: 1 for `===`, 2 for `---`, 0 for anything else. */
export function underlineLevel(text: string, begin: number, end: number): number {
  const code = text.charCodeAt(begin);
  if (code !== 0x3d && code !== 0x2d) return 0;
  // A single character under a line is more often a list or an operator than a heading.
  const run = runLength(text, begin, end, code);
  if (run < 2 || begin + run !== end) return 0;
  return code === 0x3d ? 1 : 2;
}

/** Whether a line under a table's head is its delimiter row: `|---|:-:|`. */
export function isDelimiterRow(text: string, begin: number, end: number): boolean {
  let dashes = 0;
  for (let at = begin; at < end; at++) {
    const code = text.charCodeAt(at);
    if (code === 0x2d) dashes++;
    else if (code !== 0x7c && code !== 0x3a && code !== 0x20 && code !== 0x09) return false;
  }
  return dashes > 0;
}

/** Longest title of a heading: heading paths are context, and a line of megabytes may start with `#`. */
const TITLE_UNITS_MAX = 200;

/** Returns the text of a heading line without its `#` marks. */
export function headingTitle(text: string, begin: number, end: number): string {
  let from = begin;
  while (from < end && text.charCodeAt(from) === 0x23) from++;
  from = skipSpace(text, from, end);
  let until = end;
  while (until > from && text.charCodeAt(until - 1) === 0x23) until--;
  // `# C#` keeps its mark: closing marks follow a space.
  if (until > from && !isSpace(text.charCodeAt(until - 1))) until = end;
  const title = text.slice(from, Math.min(until, from + TITLE_UNITS_MAX + 1)).trim();
  return title.length <= TITLE_UNITS_MAX ? title : title.slice(0, TITLE_UNITS_MAX).toWellFormed();
}

function isRule(text: string, begin: number, end: number): boolean {
  const code = text.charCodeAt(begin);
  let marks = 0;
  for (let at = begin; at < end; at++) {
    const next = text.charCodeAt(at);
    if (next === code) marks++;
    else if (next !== 0x20 && next !== 0x09) return false;
  }
  return marks >= 3;
}

function isNumbered(text: string, begin: number, end: number): boolean {
  let at = begin + 1;
  while (at < end && at - begin <= NUMBER_DIGITS_MAX && isDigit(text.charCodeAt(at))) at++;
  if (at >= end || at - begin > NUMBER_DIGITS_MAX) return false;
  const mark = text.charCodeAt(at);
  return (mark === 0x2e || mark === 0x29) && isGap(text, at + 1, end);
}

function isDigit(code: number): boolean {
  return code >= 0x30 && code <= 0x39;
}

function isGap(text: string, at: number, end: number): boolean {
  return at >= end || isSpace(text.charCodeAt(at));
}

function hasBacktick(text: string, begin: number, end: number): boolean {
  for (let at = begin; at < end; at++) if (text.charCodeAt(at) === 0x60) return true;
  return false;
}

function runLength(text: string, begin: number, end: number, code: number): number {
  let at = begin;
  while (at < end && text.charCodeAt(at) === code) at++;
  return at - begin;
}
