/** UTF-16 units of a title that decide about its place in a list; titles that differ only later are in the order of their ids. */
const KEY_CHARS = 200;

/** Returns a text without differences of case and of how accents are encoded. Pure. */
export function folded(text: string): string {
  return text.normalize("NFC").toLowerCase();
}

/** Returns what the store sorts titles by. A released store has these keys, so they may not change without a script. Pure. */
export function titleKeyOf(title: string): string {
  return folded(title).slice(0, KEY_CHARS).toWellFormed();
}
