import { hash } from "node:crypto";
import { readFileSync, statSync } from "node:fs";
import ignore from "ignore";
import { codeOf } from "../../lib/failure.ts";
import type { RelativePath, Unreadable, FolderPath } from "../plan/model.ts";
import type { IgnoreSettling, IgnoreVersion } from "./ignore-settling.ts";

/** Name of the ignore files: gitignore syntax, at the root and in any folder below it. */
export const IGNORE_FILE = ".kbsyncignore";

/** A larger file is not a hand-written list of patterns. */
const IGNORE_BYTES_MAX = 1024 * 1024;

/** The `ignore` package caches every tested path. It is recreated after this many, so that memory stays bounded. */
const TESTS_MAX = 4096;

/** The ignore files that apply inside one folder: its own and those of the folders above. */
export interface IgnoreScope {
  /** The folder whose ignore file cannot be read, and why. What the file would exclude is unknown. */
  readonly unreadable: Unreadable | undefined;
  /** Describes the pattern that excludes this path; undefined if none does. Assumes that the parents are wanted. */
  reasonFor(path: RelativePath, isFolder: boolean): string | undefined;
}

/** The scope without ignore files. */
export const NOTHING_IGNORED: IgnoreScope = { unreadable: undefined, reasonFor: () => undefined };

interface Pattern {
  readonly pattern: string;
  readonly mark: string;
}

/** Used like a system error code: an ignore file changed and has not settled yet. */
export const UNSETTLED = "UNSETTLED";
/** The same after so long that it is reported to a person. */
export const UNSETTLED_LONG = "EBUSY";
/** The same for a file above the size limit. */
export const TOO_LARGE = "EFBIG";

/** Reads each ignore file when it is first needed, and caches it. */
export interface IgnoreFiles {
  scopeOf(folder: FolderPath): IgnoreScope;
  /** Checks each file again when it is next needed. Unchanged files are not compiled again. */
  refresh(): void;
  /** Ignore files that could not be read since the last `refresh`, by folder. */
  unreadable(): readonly Unreadable[];
  /** Whether there is a folder at this path. */
  isFolder(folder: FolderPath): boolean;
}

/** The rules inside a folder: its own scope, or that of the folder above. */
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

/** Resolution of file times on some file systems (FAT). */
const COARSE_MS = 2000;

const ABSENT: Read = {
  version: { hash: undefined, patterns: [], stamp: "", isFresh: false },
  own: [],
};

/**
 * Opens the ignore files below `root`. Reads nothing yet. With `settling`, a changed file applies only after it has
 * settled, and until then no path in its folder is decided. Without it, each file applies as it is.
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
    const found = compile(folder, above);
    known.set(folder, found);
    return found;
  };

  const compile = (folder: string, above: Known): Known => {
    if (above.scope.unreadable !== undefined) return above;
    const read = readIn(folder);
    if ("code" in read) return closed(folder, above, read.code);
    const { version, own } = read;
    if (settling !== undefined) {
      const isGone = version.hash === undefined && settling.hasRules(folder) && !isFolder(folder);
      // A missing folder has nothing to let through, and may come back with its rules.
      if (isGone) return above;
      if (!settling.counts(folder, version))
        return closed(folder, above, settling.isOverdue(folder) ? UNSETTLED_LONG : UNSETTLED);
    }
    if (version.hash === undefined) return above;
    const before = earlier.get(folder);
    if (before?.hash === version.hash && before.above === above) return before;
    // Git asks the deepest file first. In one list, where the last match decides, the deepest comes last.
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
    // A file without patterns is equal to no file.
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
      return code !== "ENOENT" && code !== "ENOTDIR"; // an inaccessible path may be a folder
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

/** Parses an ignore file into patterns over the path below the source. Drops comments and empty lines. */
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
  // Git's default on Linux: names differ by case.
  const fresh = (): ReturnType<typeof ignore> => ignore({ ignorecase: false });
  let matcher = fresh().add(patterns);
  let tests = 0;
  return {
    unreadable: undefined,
    reasonFor: (path, isFolder) => {
      if (++tests > TESTS_MAX) {
        matcher = fresh().add(matcher); // shares the compiled patterns, drops the cached paths
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
