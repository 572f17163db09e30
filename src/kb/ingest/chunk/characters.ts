const TAB = 0x09;
const CARRIAGE_RETURN = 0x0d;
const SPACE = 0x20;

/** Whether a UTF-16 unit is white space as `String.prototype.trim` sees it. */
export function isSpace(code: number): boolean {
  if (code <= SPACE) return code === SPACE || (code >= TAB && code <= CARRIAGE_RETURN);
  return code >= 0xa0 && isWideSpace(code);
}

function isWideSpace(code: number): boolean {
  return (
    code === 0xa0 ||
    code === 0x1680 ||
    (code >= 0x2000 && code <= 0x200a) ||
    code === 0x2028 ||
    code === 0x2029 ||
    code === 0x202f ||
    code === 0x205f ||
    code === 0x3000 ||
    code === 0xfeff
  );
}

/**
 * Whether a unit belongs to a script written without spaces, so that a line may break before or after it: Chinese
 * and Japanese with their punctuation and full-width forms. Korean has spaces.
 */
export function breaksAnywhere(code: number): boolean {
  if (code < 0x2e80) return false;
  return code <= 0x9fff || (code >= 0xf900 && code <= 0xfaff) || (code >= 0xff01 && code <= 0xffef);
}

/** Whether a unit closes the text before it and so must not start a piece: closing quotes and brackets, stops. */
export function isCloser(code: number): boolean {
  switch (code) {
    case 0x21: // !
    case 0x22: // "
    case 0x27: // '
    case 0x29: // )
    case 0x2a: // * of emphasis
    case 0x2e: // .
    case 0x3f: // ?
    case 0x5d: // ]
    case 0x5f: // _ of emphasis
    case 0x60: // `
    case 0xbb: // »
    case 0x2019:
    case 0x201d:
    case 0x2026: // …
    case 0x3001: // 、
    case 0x3002: // 。
    case 0x3009: // 〉
    case 0x300b: // 》
    case 0x300d: // 」
    case 0x300f: // 』
    case 0x3011: // 】
    case 0xff01: // ！
    case 0xff09: // ）
    case 0xff0c: // ，
    case 0xff1f: // ？
      return true;
    default:
      return false;
  }
}

/** Returns the first offset in [from, to) that is not white space; `to` if there is none. */
export function skipSpace(text: string, from: number, to: number): number {
  let at = from;
  while (at < to && isSpace(text.charCodeAt(at))) at++;
  return at;
}

/** Returns the offset after the last character before `to` that is not white space; `from` if there is none. */
export function trimSpace(text: string, from: number, to: number): number {
  let at = to;
  while (at > from && isSpace(text.charCodeAt(at - 1))) at--;
  return at;
}

/** Returns the end of the word that starts at `from`. In scripts without spaces, a character with its closers is a word. */
export function wordEnd(text: string, from: number, to: number): number {
  let at = from;
  let before = 0;
  for (; at < to; at++) {
    const code = text.charCodeAt(at);
    if (isSpace(code)) break;
    if (at > from && isWordBreak(before, code)) break;
    before = code;
  }
  return at;
}

/** Whether a word may end between two units neither of which is white space. */
export function isWordBreak(before: number, code: number): boolean {
  if (before < 0x2e80 && code < 0x2e80) return false;
  return (breaksAnywhere(before) || breaksAnywhere(code)) && !isCloser(code) && !joinsBefore(code);
}

/**
 * The cut nearest to `at`, not after it but after `from`, that leaves characters whole: surrogate pairs always,
 * combining marks, emoji modifiers and joined emoji where that takes few steps.
 */
export function wholeCharacterBefore(text: string, from: number, at: number): number {
  const lowest = Math.max(from + 1, at - CLUSTER_UNITS);
  for (let cut = at; cut >= lowest; cut--) if (!isInsideCluster(text, cut)) return cut;
  if (!isInsidePair(text, at)) return at;
  return at - 1 > from ? at - 1 : at + 1;
}

/** Like `wholeCharacterBefore`, but returns an offset from `at` up to `to`. */
export function wholeCharacterAfter(text: string, at: number, to: number): number {
  const highest = Math.min(to, at + CLUSTER_UNITS);
  for (let cut = at; cut <= highest; cut++) if (!isInsideCluster(text, cut)) return cut;
  return isInsidePair(text, at) ? at + 1 : at;
}

/** Largest shift of a cut to keep a cluster whole: the longest emoji sequences in use have about 20 units. */
const CLUSTER_UNITS = 32;

const ZERO_WIDTH_JOINER = 0x200d;

function isInsideCluster(text: string, cut: number): boolean {
  if (cut <= 0 || cut >= text.length) return false;
  const code = text.charCodeAt(cut);
  if (code < 0x300) return false;
  if (isInsidePair(text, cut) || joinsBefore(code)) return true;
  if (code === 0xd83c && isSkinTone(text.charCodeAt(cut + 1))) return true;
  return text.charCodeAt(cut - 1) === ZERO_WIDTH_JOINER;
}

function isInsidePair(text: string, cut: number): boolean {
  return (text.charCodeAt(cut) & 0xfc00) === 0xdc00 && (text.charCodeAt(cut - 1) & 0xfc00) === 0xd800;
}

function joinsBefore(code: number): boolean {
  return (
    (code >= 0x300 && code <= 0x36f) ||
    (code >= 0xfe00 && code <= 0xfe0f) ||
    code === ZERO_WIDTH_JOINER ||
    (code >= 0x20d0 && code <= 0x20ff) ||
    code === 0x3099 ||
    code === 0x309a
  );
}

function isSkinTone(low: number): boolean {
  return low >= 0xdffb && low <= 0xdfff;
}
