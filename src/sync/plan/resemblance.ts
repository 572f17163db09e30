/** Recognises titles that a service stores in a form of its own: cut, composed, or without some characters. Pure. */

/** A cut title shorter than this proves too little, although text or description must be equal too. */
const CUT_CHARS_MIN = 2;

/** Returns the letters and digits of a title, which survive however a service stores it. */
export function lettersOf(title: string): string {
  return title
    .normalize("NFKC")
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{M}\p{N}]+/gu, "");
}

/** Finds things by the titles that a service may have made of theirs. */
export interface TitleIndex<T> {
  /** Returns those whose title `stored` may be a form of. The identical title comes first. */
  find(stored: string): readonly T[];
}

/** Indexes things by their titles. The cost of a search grows with the number of titles that start alike. */
export function indexTitles<T>(things: readonly T[], titleOf: (thing: T) => string): TitleIndex<T> {
  const same = Map.groupBy(things, titleOf);
  const byPrefix = new Map<string, { readonly letters: string; readonly thing: T }[]>();
  for (const thing of things) {
    const letters = lettersOf(titleOf(thing));
    const key = letters.slice(0, CUT_CHARS_MIN);
    const list = byPrefix.get(key);
    if (list === undefined) byPrefix.set(key, [{ letters, thing }]);
    else list.push({ letters, thing });
  }
  return {
    find: (stored) => {
      const equal = same.get(stored) ?? [];
      const letters = lettersOf(stored);
      const isCut = letters.length >= CUT_CHARS_MIN;
      const list = letters === "" ? [] : (byPrefix.get(letters.slice(0, CUT_CHARS_MIN)) ?? []);
      const like = list.filter((each) =>
        isCut ? each.letters.startsWith(letters) : each.letters === letters,
      );
      return [...equal, ...like.flatMap(({ thing }) => (equal.includes(thing) ? [] : [thing]))];
    },
  };
}
