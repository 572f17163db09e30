import { hash } from "node:crypto";
import { readFileSync, statSync } from "node:fs";
import ignore from "ignore";
import { codeOf } from "../../lib/failure.ts";
import type { RelativePath, Unreadable } from "../plan/model.ts";
import type { FolderPath } from "../disk/folder-path.ts";
import type { IgnoreSettling, IgnoreVersion } from "./ignore-settling.ts";

/** Name of the ignore files: gitignore syntax, at the root and in any folder below it. */
export const IGNORE_FILE = ".kbsyncignore";

/** A larger ignore file is no list of patterns that somebody wrote. */
const IGNORE_BYTES_MAX = 1024 * 1024;

/** The `ignore` package remembers every path it tested; it is made anew after this many, so that memory stays flat. */
const TESTS_MAX = 4096;

/** The ignore files that rule inside one folder: its own and those of the folders above. */
export interface IgnoreScope {
  /** The folder whose ignore file cannot be read, and why. What it would leave out is unknown. */
  readonly unreadable: Unreadable | undefined;
  /** The pattern that leaves this path out, in words; undefined if none. Parents are taken to be wanted. */
  reasonFor(path: RelativePath, isFolder: boolean): string | undefined;
}

/** Where no ignore file rules. */
export const NOTHING_IGNORED: IgnoreScope = { unreadable: undefined, reasonFor: () => undefined };

interface Pattern {
  readonly pattern: string;
  readonly mark: string;
}

/** Stands for a system error's code where an ignore file was changed and has not settled yet. */
export const UNSETTLED = "UNSETTLED";
/** The same, once that has lasted for so long that a person should know. */
export const UNSETTLED_LONG = "EBUSY";
/** The same for one with more bytes than are read. */
export const TOO_LARGE = "EFBIG";

/** Reads each ignore file when it is first needed and keeps it. */
export interface IgnoreFiles {
  scopeOf(folder: FolderPath): IgnoreScope;
  /** Has each file looked at again when it is next needed. One that did not change is not compiled again. */
  refresh(): void;
  /** Those that could not be read since the last `refresh`, by their folders. */
  unreadable(): readonly Unreadable[];
  /** Whether there is a folder at this path. */
  isFolder(folder: FolderPath): boolean;
}

/** What rules inside a folder: a scope of its own, or the one of the folder above. */
interface Known {
  readonly hash: string | undefined;
  readonly above: Known | undefined;
  readonly scope: IgnoreScope;
  readonly patterns: readonly Pattern[];
}

/** An ignore file as it was read. */
interface Read {
  readonly version: IgnoreVersion;
  readonly own: readonly Pattern[];
}

/** Times of files are as coarse as this on some file systems (FAT). */
const COARSE_MS = 2000;

const ABSENT: Read = {
  version: { hash: undefined, patterns: [], stamp: "", isFresh: false },
  own: [],
};

/**
 * Opens the ignore files below `root`. Nothing is read before it is asked for. With `settling` a file that was changed
 * counts once it has settled, and what lies in its folder cannot be decided before; without, as it is.
 */
export function openIgnoreFiles(root: string, settling?: IgnoreSettling): IgnoreFiles {
  let known = new Map<string, Known>();
  let earlier = new Map<string, Known>();
  const files = new Map<string, Read>();
  const outside: Known = { hash: undefined, above: undefined, scope: NOTHING_IGNORED, patterns: [] };

  const lookUp = (folder: string): Known => {
    const cached = known.get(folder);
    if (cached !== undefined) return cached;
    const above = folder === "" ? outside : lookUp(parentOf(folder));
    const found = look(folder, above);
    known.set(folder, found);
    return found;
  };

  const look = (folder: string, above: Known): Known => {
    if (above.scope.unreadable !== undefined) return above;
    const read = readIn(folder);
    if ("code" in read) return closed(folder, above, read.code);
    const { version, own } = read;
    if (settling !== undefined) {
      const isGone = version.hash === undefined && settling.hasRules(folder) && !isFolder(folder);
      // A folder that is gone has nothing to be let through, and may come back with its rules.
      if (isGone) return above;
      if (!settling.counts(folder, version))
        return closed(folder, above, settling.isOverdue(folder) ? UNSETTLED_LONG : UNSETTLED);
    }
    if (version.hash === undefined) return above;
    const before = earlier.get(folder);
    if (before?.hash === version.hash && before.above === above) return before;
    // Git asks the deepest file first; in one list, where the last match decides, that is its end.
    const patterns = [...above.patterns, ...own];
    return { hash: version.hash, above, scope: scopeOver(patterns), patterns };
  };

  const readIn = (folder: string): Read | { readonly code: string } => {
    try {
      return readFile(folder);
    } catch (error) {
      const code = codeOf(error) ?? "UNKNOWN";
      return code === "ENOENT" || code === "ENOTDIR" ? ABSENT : { code };
    }
  };
  const readFile = (folder: string): Read | { readonly code: string } => {
    const file = folder === "" ? IGNORE_FILE : `${folder}/${IGNORE_FILE}`;
    const stats = statSync(`${root}/${file}`, { throwIfNoEntry: false });
    if (stats?.isFile() !== true) return ABSENT;
    const stamp = `${stats.ino} ${stats.size} ${stats.mtimeMs} ${stats.ctimeMs}`;
    const before = files.get(folder);
    if (before?.version.stamp === stamp && !before.version.isFresh) return before;
    if (stats.size > IGNORE_BYTES_MAX) return { code: TOO_LARGE };
    const isFresh = Date.now() - Math.max(stats.mtimeMs, stats.ctimeMs) < COARSE_MS;
    const own = parseIgnoreFile(readFileSync(`${root}/${file}`, "utf8"), folder, file);
    const patterns = own.map(({ pattern }) => pattern);
    // A file without a pattern has the rules of none.
    const name = patterns.length === 0 ? undefined : hash("sha256", patterns.join("\n"));
    const version = { hash: name, patterns, stamp, isFresh };
    const read = { version, own };
    files.set(folder, read);
    return read;
  };

  const isFolder = (folder: string): boolean => {
    try {
      return statSync(`${root}/${folder}`, { throwIfNoEntry: false })?.isDirectory() === true;
    } catch (error) {
      const code = codeOf(error);
      return code !== "ENOENT" && code !== "ENOTDIR"; // what cannot be looked at may be there
    }
  };

  return {
    scopeOf: (folder) => lookUp(folder).scope,
    unreadable: () =>
      [...known].flatMap(([folder, { scope }]) =>
        scope.unreadable?.path === folder && scope.unreadable.code !== UNSETTLED ? [scope.unreadable] : [],
      ),
    refresh: () => {
      earlier = known;
      known = new Map();
    },
    isFolder,
  };
}

function closed(folder: FolderPath, above: Known, code: string): Known {
  return {
    hash: undefined,
    above,
    scope: { ...NOTHING_IGNORED, unreadable: { path: folder, code } },
    patterns: [],
  };
}

/** Patterns of an ignore file as patterns over the path below the source. Comments and empty lines are dropped. */
function parseIgnoreFile(text: string, folder: string, file: string): Pattern[] {
  const prefix = folder === "" ? "" : `/${folder.replaceAll(/[\\*?[\]]/g, String.raw`\$&`)}`;
  const patterns: Pattern[] = [];
  for (const line of text.replace(/^\uFEFF/, "").split(/\r?\n/)) {
    if (line.trim() === "" || line.startsWith("#")) continue;
    const negative = line.startsWith("!");
    const body = negative ? line.slice(1) : line;
    const mark = `\`${line.trimEnd()}\` in ${file}`;
    patterns.push({ pattern: (negative ? "!" : "") + bindTo(prefix, body), mark });
  }
  return patterns;
}

/** `foo` below folder `a` is `/a/**` + `/foo`, `x/y` is `/a/x/y`: a slash before the end binds a pattern to its folder. */
function bindTo(prefix: string, body: string): string {
  if (prefix === "") return body;
  const bound = body.trimEnd().replace(/\/$/, "").includes("/");
  return bound ? `${prefix}/${body.replace(/^\//, "")}` : `${prefix}/**/${body}`;
}

function scopeOver(patterns: readonly Pattern[]): IgnoreScope {
  // Git's own default on Linux: names differ by case.
  const fresh = (): ReturnType<typeof ignore> => ignore({ ignorecase: false });
  let matcher = fresh().add(patterns);
  let tests = 0;
  return {
    unreadable: undefined,
    reasonFor: (path, isFolder) => {
      if (++tests > TESTS_MAX) {
        matcher = fresh().add(matcher); // shares the compiled patterns, drops the remembered paths
        tests = 1;
      }
      const { ignored, rule } = matcher.test(isFolder ? `${path}/` : path);
      if (!ignored) return undefined;
      return `left out by ${rule?.mark ?? IGNORE_FILE}`;
    },
  };
}

function parentOf(path: string): string {
  const slash = path.lastIndexOf("/");
  return slash === -1 ? "" : path.slice(0, slash);
}
