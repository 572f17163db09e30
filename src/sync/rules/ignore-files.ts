import { hash } from "node:crypto";
import { lstatSync, readFileSync, statSync } from "node:fs";
import ignore from "ignore";
import { codeOf } from "../../lib/failure.ts";
import type { RelativePath, Unreadable, FolderPath } from "../plan/model.ts";
import { decodeIgnoreFile, type IgnoreLine, parseIgnoreFile } from "./ignore-text.ts";
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
const TOO_LARGE = "EFBIG";
/** The same for a file that is not text. */
const NOT_TEXT = "EILSEQ";
/** The same for what is not a file and has the name of an ignore file. */
const IS_FOLDER = "EISDIR";
const LEADS_NOWHERE = "ENOLINK";
const NOT_A_FILE = "EINVAL";

/** Says why what an ignore file would exclude is unknown, as the end of a sentence that begins with the file. */
export function ignoreFileWords(code: string): string {
  switch (code) {
    case UNSETTLED:
      return "was changed a moment ago, and applies once it has settled";
    case UNSETTLED_LONG:
      return "has not stopped changing for a minute";
    case TOO_LARGE:
      return "is larger than 1 MB and is not read";
    case NOT_TEXT:
      return "is not text in UTF-8 or UTF-16";
    case IS_FOLDER:
      return "is a folder, not a file";
    case LEADS_NOWHERE:
      return "is a symbolic link that leads nowhere";
    case NOT_A_FILE:
      return "is not a plain file";
    default:
      return `cannot be read (${code})`;
  }
}

/** A pattern of an ignore file that may not mean what its writer expects. */
export interface DoubtfulPattern {
  /** The ignore file, relative to the source. */
  readonly file: RelativePath;
  readonly line: number;
  readonly text: string;
  /** The patterns that are applied. */
  readonly readings: readonly string[];
}

/** Reads each ignore file when it is first needed, and caches it. */
export interface IgnoreFiles {
  scopeOf(folder: FolderPath): IgnoreScope;
  /** Checks each file again when it is next needed. Unchanged files are not compiled again. */
  refresh(): void;
  /** Ignore files that could not be read since the last `refresh`, by folder. */
  unreadable(): readonly Unreadable[];
  /** Doubtful patterns of the files that apply as far as they were needed since the last `refresh`. */
  doubtful(): readonly DoubtfulPattern[];
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
  readonly doubtful: readonly DoubtfulPattern[];
}

/** Resolution of file times on some file systems (FAT). */
const COARSE_MS = 2000;

const ABSENT: Read = {
  version: { hash: undefined, patterns: [], stamp: "", isFresh: false },
  own: [],
  doubtful: [],
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
    if (stats === undefined) {
      const isThere = lstatSync(`${root}/${file}`, { throwIfNoEntry: false }) !== undefined;
      return isThere ? { code: LEADS_NOWHERE } : ABSENT;
    }
    if (!stats.isFile()) return { code: stats.isDirectory() ? IS_FOLDER : NOT_A_FILE };
    const stamp = `${stats.ino} ${stats.size} ${stats.mtimeMs} ${stats.ctimeMs}`;
    const before = files.get(folder);
    if (before?.version.stamp === stamp && !before.version.isFresh) return before;
    if (stats.size > IGNORE_BYTES_MAX) return { code: TOO_LARGE };
    const isFresh = Date.now() - Math.max(stats.mtimeMs, stats.ctimeMs) < COARSE_MS;
    const text = decodeIgnoreFile(readFileSync(`${root}/${file}`));
    if (text === undefined) return { code: NOT_TEXT };
    const lines = parseIgnoreFile(text, root);
    const own = lines.flatMap((line) => patternsOf(line, folder, file));
    const doubtful = lines.flatMap(({ isDoubtful, ...line }) => (isDoubtful ? [{ file, ...line }] : []));
    const patterns = own.map(({ pattern }) => pattern);
    // A file without patterns is equal to no file.
    const name = patterns.length === 0 ? undefined : hash("sha256", patterns.join("\n"));
    const version = { hash: name, patterns, stamp, isFresh };
    const read = { version, own, doubtful };
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
    doubtful: () =>
      [...known].flatMap(([folder, { scope }]) =>
        scope.unreadable === undefined ? (files.get(folder)?.doubtful ?? []) : [],
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

/** The patterns of a line over the path below the source. */
function patternsOf({ text, line, readings }: IgnoreLine, folder: string, file: string): readonly Pattern[] {
  const escaped = folder.normalize("NFC").replaceAll(/[\\*?[\]]/g, String.raw`\$&`);
  const prefix = folder === "" ? "" : `/${escaped}`;
  const mark = `\`${text}\` in ${file}:${line}`;
  return readings.map((reading) => {
    const isNegative = reading.startsWith("!");
    const body = isNegative ? reading.slice(1) : reading;
    return { pattern: (isNegative ? "!" : "") + bindTo(prefix, body), mark };
  });
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
      // Programs compose letters in either way, and a person sees no difference.
      const { ignored, rule } = matcher.test((isFolder ? `${path}/` : path).normalize("NFC"));
      if (!ignored) return undefined;
      return `left out by ${rule?.mark ?? IGNORE_FILE}`;
    },
  };
}

function parentOf(path: string): string {
  const slash = path.lastIndexOf("/");
  return slash === -1 ? "" : path.slice(0, slash);
}
