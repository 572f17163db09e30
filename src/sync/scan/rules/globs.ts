import picomatch from "picomatch";

/** A compiled glob of the configuration. */
export type Glob = ReturnType<typeof compileGlob>;

/**
 * Compiles a glob over the path below the source, with the rules of an ignore file. A glob without a slash matches at any
 * depth. A leading slash binds it to the source's root. A glob that ends in a plain name or in a slash also matches
 * everything below a folder of that name. Parentheses stand for themselves, too, as in `a (1).md`.
 */
export function compileGlob(text: string) {
  const plain = text.replaceAll(/(?<!\\)[()]/g, String.raw`\$&`);
  const globs = [...new Set([text, plain])].map(compileOne);
  return {
    /** As written. */
    text,
    matchesFile: (path: string): boolean => globs.some((glob) => glob.matchesFile(path)),
    /** Whether the glob matches everything below this folder. */
    coversFolder: (path: string): boolean => globs.some((glob) => glob.coversFolder(path)),
    /** Whether the glob may match something below this folder. Returns true when in doubt. */
    reachesInto: (path: string): boolean => globs.some((glob) => glob.reachesInto(path)),
  };
}

function compileOne(text: string): Omit<Glob, "text"> {
  // As in ignore files, either way to compose a letter stands for both.
  const glob = text.normalize("NFC");
  const bound = glob.startsWith("/") ? glob.slice(1) : glob.startsWith("./") ? glob.slice(2) : glob;
  const withoutEnd = bound.replace(/\/+$/, "");
  const anyDepth = bound === glob && !withoutEnd.includes("/");
  const path = anyDepth ? `**/${withoutEnd}` : withoutEnd;

  const lastPart = path.slice(path.lastIndexOf("/") + 1);
  const namesFolder = bound.endsWith("/");
  const takesBelow = namesFolder || !picomatch.scan(lastPart).isGlob;
  const fileGlobs = [...(namesFolder ? [] : [path]), ...(takesBelow ? [`${path}/**/*`] : [])];
  const covers = takesBelow ? `${path}/**` : path.endsWith("/**") ? path : undefined;

  // Hidden files are excluded before any glob applies, so dots need no special treatment. `!` is a plain character: include
  // and exclude express the same more clearly.
  const options = { dot: true, nonegate: true } as const;
  const plainStart = picomatch.scan(path).base;
  const base = plainStart.includes("\\") ? "" : plainStart;
  const matchesFile = picomatch(fileGlobs, options);
  const coversFolder = covers === undefined ? () => false : picomatch(covers, options);
  const reachesInto = (folder: string): boolean =>
    base === "" || folder === base || folder.startsWith(`${base}/`) || base.startsWith(`${folder}/`);
  return {
    matchesFile: (each) => matchesFile(each.normalize("NFC")),
    coversFolder: (each) => coversFolder(each.normalize("NFC")),
    reachesInto: (each) => reachesInto(each.normalize("NFC")),
  };
}
