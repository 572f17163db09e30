/**
 * Compiles a glob from a client over paths: `*` and `?` stand for characters of a name, `**` for any folders. A glob without a slash
 * matches at any depth, a leading slash binds it to the root, and one that ends in a slash matches everything below. Takes time of
 * the product of the lengths at most, whatever the glob: a regular expression could take hours.
 */
export function pathGlob(glob: string): (path: string) => boolean {
  // Below a folder is at least one name.
  const bound = glob
    .replace(/^\//, "")
    .replace(/\/+$/, "/**")
    .replace(/(^|\/)\*\*$/, "$1**/*");
  const parts = (glob.includes("/") ? bound : `**/${bound}`).split("/").map((part) => Array.from(part));
  return (path) => {
    const names = path.split("/").map((name) => Array.from(name));
    return matches(parts, names, isFolders, matchesName);
  };
}

/** Whether a text has a character that `pathGlob` does not take literally. */
export function hasWildcard(text: string): boolean {
  return /[*?]/.test(text);
}

function isFolders(part: readonly string[]): boolean {
  return part.length === 2 && part.every((char) => char === "*");
}

function matchesName(part: readonly string[], name: readonly string[]): boolean {
  const isRun = (char: string): boolean => char === "*";
  return matches(part, name, isRun, (char, own) => char === "?" || char === own);
}

/** Matches greedily: only the last run before a difference has to grow, because a longer earlier one matches no more. */
function matches<P, T>(
  pattern: readonly P[],
  items: readonly T[],
  isRun: (piece: P) => boolean,
  isEqual: (piece: P, item: T) => boolean,
): boolean {
  let at = 0;
  let run: { readonly after: number; from: number } | undefined;
  for (let next = 0; next < items.length;) {
    const [piece, item] = [pattern[at], items[next]];
    if (piece !== undefined && isRun(piece)) {
      at += 1;
      run = { after: at, from: next };
    } else if (piece !== undefined && item !== undefined && isEqual(piece, item)) {
      at += 1;
      next += 1;
    } else if (run === undefined) return false;
    else {
      run.from += 1;
      next = run.from;
      at = run.after;
    }
  }
  return pattern.slice(at).every(isRun);
}
