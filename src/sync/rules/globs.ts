import picomatch from "picomatch";

/** A compiled glob of the configuration. */
export interface Glob {
  /** As written. */
  readonly text: string;
  matchesFile(path: string): boolean;
  /** Whether the glob matches everything below this folder. */
  coversFolder(path: string): boolean;
  /** Whether something below this folder may match. Says yes when in doubt. */
  reachesInto(path: string): boolean;
}

/**
 * Compiles a glob over the path below the source. As in an ignore file, a glob without a slash matches at any depth, a
 * leading slash binds it to the source's root, and one whose last part is a plain name or that ends in a slash also
 * takes everything below a folder of that name.
 */
export function compileGlob(text: string): Glob {
  const bound = text.startsWith("/") ? text.slice(1) : text.startsWith("./") ? text.slice(2) : text;
  const withoutEnd = bound.replace(/\/+$/, "");
  const anyDepth = bound === text && !withoutEnd.includes("/");
  const path = anyDepth ? `**/${withoutEnd}` : withoutEnd;

  const lastPart = path.slice(path.lastIndexOf("/") + 1);
  const namesFolder = bound.endsWith("/");
  const takesBelow = namesFolder || !picomatch.scan(lastPart).isGlob;
  const fileGlobs = [...(namesFolder ? [] : [path]), ...(takesBelow ? [`${path}/**/*`] : [])];
  const covers = takesBelow ? `${path}/**` : path.endsWith("/**") ? path : undefined;

  // Hidden files are left out before any glob is asked, so a dot needs no special treatment. `!` is a plain character:
  // include and exclude say the same more clearly.
  const options = { dot: true, nonegate: true } as const;
  const plainStart = picomatch.scan(path).base;
  const base = plainStart.includes("\\") ? "" : plainStart;
  return {
    text,
    matchesFile: picomatch(fileGlobs, options),
    coversFolder: covers === undefined ? () => false : picomatch(covers, options),
    reachesInto: (folder) =>
      base === "" || folder === base || folder.startsWith(`${base}/`) || base.startsWith(`${folder}/`),
  };
}
