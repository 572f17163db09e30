/** UTF-16 units of a key. Titles that differ only later are in the order of their ids. */
const KEY_CHARS = 200;
/** Numbers are ordered by their value up to this many digits. */
const DIGITS_MAX = 40;

/** Returns a text without differences of case and of how accents are encoded. Pure. */
export function folded(text: string): string {
  return text.normalize("NFC").toLowerCase();
}

/**
 * Returns what the store sorts titles by: case does not count, and numbers count by their value (`Part 9` before `Part 10`), because
 * each begins with a character for its length. A released store has these keys, so they may not change without a script. Pure.
 */
export function titleKeyOf(title: string): string {
  const key = folded(title.slice(0, KEY_CHARS)).replaceAll(/0*(\d+)/g, (_, digits: string) => {
    return String.fromCharCode(48 + Math.min(digits.length, DIGITS_MAX)) + digits;
  });
  return key.slice(0, KEY_CHARS).toWellFormed();
}
