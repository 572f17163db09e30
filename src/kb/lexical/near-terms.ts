import { MARK } from "./languages.ts";

/** Shorter words have too many neighbours by chance. */
const CHARS_MIN = 4;
/** Bounds the neighbours of a word to about a thousand. */
const CHARS_MAX = 20;
const LETTERS = "abcdefghijklmnopqrstuvwxyz";

/**
 * Returns the terms that differ from a term by one typing error: a letter missing, added, replaced, or swapped with the next.
 * Terms with the same first letter come first, because people rarely err there. Returns none for short words and words with
 * digits or letters other than a–z. The mark of a language stays. Pure.
 */
export function nearTerms(term: string): readonly string[] {
  const mark = term.indexOf(MARK);
  if (mark > 0) return nearTerms(term.slice(0, mark)).map((near) => near + term.slice(mark));
  if (term.length < CHARS_MIN || term.length > CHARS_MAX || !/^[a-z]+$/.test(term)) return [];
  const near = new Set<string>();
  for (let at = term.length; at >= 0; at--) {
    const before = term.slice(0, at);
    const after = term.slice(at);
    near.add(before + after.slice(1));
    near.add(before + after.charAt(1) + after.charAt(0) + after.slice(2));
    for (const letter of LETTERS) {
      near.add(before + letter + after);
      near.add(before + letter + after.slice(1));
    }
  }
  near.delete(term);
  const isSameStart = (other: string): boolean => other.startsWith(term.charAt(0));
  return [...near].sort((a, b) => Number(isSameStart(b)) - Number(isSameStart(a)));
}
