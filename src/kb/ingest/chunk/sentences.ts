import { isCloser, isSpace } from "./characters.ts";

/**
 * Offsets of the next stops of a text. Most texts use only `.`, `!` and `?`, for which `indexOf` is ten times as fast as a loop
 * over all characters.
 */
export interface Stops {
  readonly isWide: boolean;
  /** Next `.`, `!` and `?` from the last searched offset on; -1 before the first search. */
  dot: number;
  bang: number;
  question: number;
}

/** Scripts with stops of their own; excludes quotation marks, dashes and emoji. */
const WIDE_SCRIPTS = /[\u0589-\u1362\u3002-\u9fff\uff01-\uff61]/;

/** Starts a search for the stops of `text`. */
export function newStops(text: string): Stops {
  return { isWide: WIDE_SCRIPTS.test(text), dot: -1, bang: -1, question: -1 };
}

/**
 * Returns the offset after the first sentence end after `from`; `to` if there is none. A stop ends a sentence before white space, a
 * CJK or other full-width stop anywhere. `Intl.Segmenter` is more accurate and about a hundred times slower; an error of this rule
 * only moves a cut to the next sentence. Call with ascending `from`.
 */
export function nextSentenceEnd(text: string, stops: Stops, from: number, to: number): number {
  for (let at = nextStop(text, stops, from, to); at < to;) {
    const code = text.charCodeAt(at);
    const behind = skipClosers(text, at + 1, to);
    if (behind >= to || code > ASCII_MAX) return behind;
    if (isSpace(text.charCodeAt(behind)) && !(code === DOT && isAbbreviation(text, from, at))) return behind;
    at = nextStop(text, stops, behind, to);
  }
  return to;
}

function nextStop(text: string, stops: Stops, from: number, to: number): number {
  if (stops.isWide) return nextWideStop(text, from, to);
  if (stops.dot < from) stops.dot = find(text, ".", from);
  if (stops.bang < from) stops.bang = find(text, "!", from);
  if (stops.question < from) stops.question = find(text, "?", from);
  return Math.min(stops.dot, stops.bang, stops.question, to);
}

function find(text: string, stop: string, from: number): number {
  const at = text.indexOf(stop, from);
  return at < 0 ? text.length : at;
}

function nextWideStop(text: string, from: number, to: number): number {
  for (let at = from; at < to; at++) {
    const code = text.charCodeAt(at);
    if (code > QUESTION) {
      if (code >= ARMENIAN_STOP && isWideStop(code)) return at;
    } else if (code === DOT || code === BANG || code === QUESTION) return at;
  }
  return to;
}

const ASCII_MAX = 0x7f;
const BANG = 0x21;
const DOT = 0x2e;
const QUESTION = 0x3f;
const ARMENIAN_STOP = 0x589;

/** Whether a unit at the end of a line ends a sentence; closing quotes count. */
export function endsSentence(code: number): boolean {
  return code === DOT || code === BANG || code === QUESTION || isQuote(code) || isWideStop(code);
}

function isQuote(code: number): boolean {
  return code === 0x22 || code === 0x201d;
}

function isWideStop(code: number): boolean {
  switch (code) {
    case ARMENIAN_STOP:
    case 0x61f: // Arabic question mark
    case 0x6d4: // Urdu
    case 0x964: // Devanagari danda
    case 0x965:
    case 0x1362: // Ethiopic
    case 0x3002: // 。
    case 0xff01: // ！
    case 0xff0e: // ．
    case 0xff1f: // ？
    case 0xff61: // ｡
      return true;
    default:
      return false;
  }
}

function skipClosers(text: string, from: number, to: number): number {
  let at = from;
  while (at < to && isCloser(text.charCodeAt(at))) at++;
  return at;
}

/** Words whose stop seldom ends a sentence. Single letters (initials, `e.g.`) need no entry. */
const ABBREVIATIONS: ReadonlySet<string> = new Set(
  "al approx bzw ca cf dr eq fig figs mr mrs ms no nr prof resp sec st usw vgl vol vs".split(" "),
);
const ABBREVIATION_UNITS_MAX = 6;

function isAbbreviation(text: string, from: number, stop: number): boolean {
  let begin = stop;
  while (begin > from && stop - begin <= ABBREVIATION_UNITS_MAX && isLetter(text.charCodeAt(begin - 1)))
    begin--;
  const units = stop - begin;
  if (units === 0 || units > ABBREVIATION_UNITS_MAX) return false;
  return units === 1 || ABBREVIATIONS.has(text.slice(begin, stop).toLowerCase());
}

function isLetter(code: number): boolean {
  return (code >= 0x61 && code <= 0x7a) || (code >= 0x41 && code <= 0x5a);
}
