/** Name of the tokenizer of this file. What it counts never changes: another rule gets another name. */
export const TOKENIZER = "kbsync-1";

/**
 * Counts the tokens of a text by the tokenizer `kbsync-1`. It has no vocabulary, so every client can count the same:
 *
 * - one token per 7 ASCII letters of a word, begun: lower-case letters with at most one capital before them, or capitals;
 * - one per 3 digits, begun, of a number, and one per 2 other ASCII signs, begun, of a run;
 * - one per 3 letters, begun, of a run of other Latin, Greek and Cyrillic letters;
 * - one for a line feed with all white space after it, and for other white space from two characters on;
 * - one for every other UTF-16 unit.
 *
 * docs/BENCHMARKS.md compares the counts with those of o200k_base. Linear. The count never falls as a text grows at its end.
 */
export function countTokens(text: string): number {
  let tokens = 0;
  for (let at = 0; at < text.length;) {
    const kind = kindAt(text, at);
    let end = at + 1;
    if (kind === LINE) while (kindAt(text, end) >= SPACE) end++;
    else if (kind === CAPITAL && kindAt(text, end) === LOWER) while (kindAt(text, end) === LOWER) end++;
    else if (kind !== OTHER) while (kindAt(text, end) === kind) end++;
    // A single space belongs to the word after it.
    if (kind !== SPACE || end - at > 1) tokens += Math.ceil((end - at) / (PER_TOKEN[kind] ?? end - at));
    at = end;
  }
  return tokens;
}

/** Kinds of characters. White space is from SPACE on. */
const [END, OTHER, SIGN, DIGIT, LETTER, LOWER, CAPITAL, SPACE, LINE] = [0, 1, 2, 3, 4, 5, 6, 7, 8] as const;
/** Characters per token of a run; a run of white space is one token. */
const PER_TOKEN = [1, 1, 2, 3, 3, 7, 7] as const;

const ASCII = Uint8Array.from({ length: 128 }, (_, code) => {
  const character = String.fromCharCode(code);
  if (character === "\n") return LINE;
  if (/[ \t\r]/.test(character)) return SPACE;
  if (/[a-z]/.test(character)) return LOWER;
  if (/[A-Z]/.test(character)) return CAPITAL;
  if (/[0-9]/.test(character)) return DIGIT;
  return /[!-~]/.test(character) ? SIGN : OTHER;
});

function kindAt(text: string, at: number): number {
  const code = text.charCodeAt(at);
  if (code < 128) return ASCII[code] ?? OTHER;
  if (Number.isNaN(code)) return END;
  return isAlphabetic(code) ? LETTER : OTHER;
}

/** Latin with diacritics, Greek and Cyrillic: scripts whose letters share tokens. */
function isAlphabetic(code: number): boolean {
  return (
    (code >= 0xc0 && code <= 0x24f) || (code >= 0x370 && code <= 0x52f) || (code >= 0x1e00 && code <= 0x1fff)
  );
}
