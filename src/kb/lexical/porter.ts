/**
 * Returns the stem of an English word by Porter's algorithm (M. F. Porter, 1980), as SQLite's FTS5 `porter` tokenizer
 * computes it: words under 3 or over 64 characters stay unchanged. Expects lower case; letters outside a–z count as
 * consonants. A test compares it with FTS5.
 */
export function stem(word: string): string {
  if (word.length < 3 || word.length > 64) return word;
  return tidyEnd(dropSuffix(shorten(shorten(terminalY(pastAndGerund(plural(word))), DOUBLE), SINGLE)));
}

type Rules = ReadonlyMap<string, readonly (readonly [suffix: string, replacement: string])[]>;

/** Step 2 of the algorithm: double suffixes, by their penultimate letter. */
const DOUBLE: Rules = byLetterBeforeLast([
  ["ational", "ate"],
  ["tional", "tion"],
  ["enci", "ence"],
  ["anci", "ance"],
  ["izer", "ize"],
  ["logi", "log"],
  ["bli", "ble"],
  ["alli", "al"],
  ["entli", "ent"],
  ["eli", "e"],
  ["ousli", "ous"],
  ["ization", "ize"],
  ["ation", "ate"],
  ["ator", "ate"],
  ["alism", "al"],
  ["iveness", "ive"],
  ["fulness", "ful"],
  ["ousness", "ous"],
  ["aliti", "al"],
  ["iviti", "ive"],
  ["biliti", "ble"],
]);

/** Step 3: the suffixes that remain after step 2. */
const SINGLE: Rules = byLetterBeforeLast([
  ["icate", "ic"],
  ["ative", ""],
  ["alize", "al"],
  ["iciti", "ic"],
  ["ical", "ic"],
  ["ful", ""],
  ["ness", ""],
]);

/** Step 4: suffixes removed from a long stem; `ion` only after s or t. */
const LAST: Rules = byLetterBeforeLast(
  "al ance ence er ic able ible ant ement ment ent ion ou ism ate iti ous ive ize"
    .split(" ")
    .map((suffix) => [suffix, ""]),
);

function byLetterBeforeLast(rules: readonly (readonly [string, string])[]): Rules {
  return Map.groupBy(rules, ([suffix]) => suffix.at(-2) ?? "");
}

function plural(word: string): string {
  if (!word.endsWith("s")) return word;
  if (/^.+(?:ss|i)es$/.test(word)) return word.slice(0, -2);
  return word.endsWith("ss") ? word : word.slice(0, -1);
}

function pastAndGerund(word: string): string {
  if (word.endsWith("eed")) return measure(word, word.length - 3) > 0 ? word.slice(0, -1) : word;
  const cut = word.endsWith("ed") ? 2 : word.endsWith("ing") ? 3 : 0;
  if (cut === 0 || !hasVowel(word, word.length - cut)) return word;
  const rest = word.slice(0, -cut);
  if (/(?:at|bl|iz)$/.test(rest)) return `${rest}e`;
  if (endsDouble(rest) && !/[lsz]$/.test(rest)) return rest.slice(0, -1);
  return measure(rest, rest.length) === 1 && endsShort(rest) ? `${rest}e` : rest;
}

function terminalY(word: string): string {
  return word.endsWith("y") && hasVowel(word, word.length - 1) ? `${word.slice(0, -1)}i` : word;
}

/** Replaces the first matching suffix if the stem before it has at least one vowel–consonant pair. */
function shorten(word: string, rules: Rules): string {
  const rule = rules.get(word.at(-2) ?? "")?.find(([suffix]) => word.endsWith(suffix));
  if (rule === undefined) return word;
  const at = word.length - rule[0].length;
  return measure(word, at) > 0 ? word.slice(0, at) + rule[1] : word;
}

function dropSuffix(word: string): string {
  const rule = LAST.get(word.at(-2) ?? "")?.find(([suffix]) => word.endsWith(suffix));
  if (rule === undefined) return word;
  const at = word.length - rule[0].length;
  if (measure(word, at) <= 1) return word;
  if (rule[0] === "ion" && !/[st]$/.test(word.slice(0, at))) return word;
  return word.slice(0, at);
}

function tidyEnd(word: string): string {
  let rest = word;
  if (rest.endsWith("e")) {
    const size = measure(rest, rest.length - 1);
    if (size > 1 || (size === 1 && !endsShort(rest.slice(0, -1)))) rest = rest.slice(0, -1);
  }
  return rest.endsWith("ll") && measure(rest, rest.length) > 1 ? rest.slice(0, -1) : rest;
}

function isVowel(word: string, at: number): boolean {
  const letter = word[at] ?? "";
  if (letter === "y") return at > 0 && !isVowel(word, at - 1);
  return "aeiou".includes(letter);
}

function hasVowel(word: string, end: number): boolean {
  for (let at = 0; at < end; at++) if (isVowel(word, at)) return true;
  return false;
}

/** Porter's m: the number of vowel runs followed by a consonant run in the first `end` letters. */
function measure(word: string, end: number): number {
  let pairs = 0;
  let afterVowel = false;
  for (let at = 0; at < end; at++) {
    const vowel = isVowel(word, at);
    if (afterVowel && !vowel) pairs++;
    afterVowel = vowel;
  }
  return pairs;
}

function endsDouble(word: string): boolean {
  const last = word.length - 1;
  return last > 0 && word[last] === word[last - 1] && !isVowel(word, last);
}

/** Porter's *o: the word ends in consonant, vowel, consonant, and the last is not w, x or y. */
function endsShort(word: string): boolean {
  const last = word.length - 1;
  if (last < 2 || isVowel(word, last) || !isVowel(word, last - 1) || isVowel(word, last - 2)) return false;
  return !"wxy".includes(word[last] ?? "");
}
