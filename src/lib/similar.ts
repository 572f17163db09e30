/** A word of this many letters may differ in one place, one three times as long in three. */
const LETTERS_PER_EDIT = 4;

/** Returns the known word that a mistyped one probably means; undefined if none is close. */
export function similarTo(word: string, known: readonly string[]): string | undefined {
  const plain = (text: string): string => text.toLowerCase().replaceAll(/[-_]/g, "");
  const given = plain(word);
  const rated = known.map((name) => ({ name, edits: editsBetween(given, plain(name)) }));
  const [best] = rated.toSorted((a, b) => a.edits - b.edits);
  return best !== undefined && best.edits <= Math.max(1, given.length / LETTERS_PER_EDIT)
    ? best.name
    : undefined;
}

/** Levenshtein's distance: insertions, deletions and replacements of a letter. */
function editsBetween(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, at) => at);
  for (let i = 1; i <= a.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const replaced = (row[j - 1] ?? 0) + Number(a[i - 1] !== b[j - 1]);
      next.push(Math.min(replaced, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}
