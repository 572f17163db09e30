import { statSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import ignore from "ignore";
import { isAbsence } from "../../../lib/failure.ts";
import type { RelativePath, Unreadable, FolderPath } from "../../plan/model.ts";
import type { IgnoreSettling } from "./ignore-settling.ts";
import {
  CHANGED,
  type DoubtfulPattern,
  type IgnoreContents,
  type IgnorePlace,
  type Pattern,
  readIgnoreFile,
  stampAt,
  STILL_CHANGING,
  type UnknownIgnore,
  UNSETTLED,
} from "./ignore-reader.ts";
import { GIT_IGNORE, type WorkTree, workTreeAround } from "./work-tree.ts";

/** Name of the ignore files: gitignore syntax, at the root and in any folder below it. */
export const IGNORE_FILE = ".kbsyncignore";

/** The `ignore` package caches every tested path. It is recreated after this many, so that memory stays bounded. */
const TESTS_MAX = 4096;

/** The ignore files that apply inside one folder: its own and those of the folders above. */
export interface IgnoreScope {
  /** The folder whose ignore file cannot be read, and why. What the file would exclude is unknown. */
  readonly unreadable: UnreadableIgnore | undefined;
  /** Assumes that the parents are wanted. "" is the source's folder. */
  test(path: RelativePath, isFolder: boolean): IgnoreVerdict;
}

/** What the patterns say of a path. */
export interface IgnoreVerdict {
  /** The pattern that excludes the path; undefined if none does. */
  readonly reason: string | undefined;
  /** A pattern that begins with `!` includes it. */
  readonly isIncluded: boolean;
}

/** A folder of which nothing is decided because of a file. */
export interface UnreadableIgnore extends Unreadable {
  /** The ignore file as seen from the source, and the end of a sentence about it; undefined: a mount is the reason. */
  readonly file?: string;
  readonly words?: string;
}

/** The scope without ignore files. */
export const NOTHING_IGNORED: IgnoreScope = {
  unreadable: undefined,
  test: () => ({ reason: undefined, isIncluded: false }),
};

/** Reads each ignore file when it is first needed, and caches it. */
export type IgnoreFiles = ReturnType<typeof openIgnoreFiles>;

/** The rules inside a folder, as its own ignore files and those above make them. */
interface FolderIgnores {
  /** The folder that the contents are of; a folder without patterns has the rules of the one above. */
  readonly name: string;
  readonly contents: readonly IgnoreContents[];
  readonly above: FolderIgnores | undefined;
  readonly scope: IgnoreScope;
  /** Git's patterns come first: the last match decides, and what a person excludes here stays excluded. */
  readonly git: readonly Pattern[];
  readonly own: readonly Pattern[];
}

const NO_RULES: FolderIgnores = {
  name: "",
  contents: [],
  above: undefined,
  scope: NOTHING_IGNORED,
  git: [],
  own: [],
};

/** Which ignore files count. */
export interface IgnoreFilesOptions {
  /** Whether `.gitignore` files count. Default: if the source is in a Git work tree that does not ignore it. */
  readonly gitignore?: boolean | undefined;
  /** With it, a changed file applies only after it has settled, and until then no path in its folder is decided. */
  readonly settling?: IgnoreSettling | undefined;
}

/** Opens the ignore files below `root`. Reads nothing yet. */
export function openIgnoreFiles(root: string, { gitignore, settling }: IgnoreFilesOptions = {}) {
  let known = new Map<string, FolderIgnores>();
  let earlier = new Map<string, FolderIgnores>();
  /** Without a work tree, `.gitignore` files do not count. */
  let tree: WorkTree | undefined;
  /** The rules above the source. Undefined: to be read. */
  let outside: FolderIgnores | undefined;
  const treeNow = (): WorkTree | undefined => (gitignore === false ? undefined : workTreeAround(root));
  const use = (next: WorkTree | undefined): void => {
    if (next?.top !== tree?.top || next?.prefix !== tree?.prefix) earlier = new Map();
    tree = next;
  };

  const lookUp = (folder: FolderPath): FolderIgnores => {
    const cached = known.get(folder);
    if (cached !== undefined) return cached;
    const above = folder === "" ? (outside ??= readOutside()) : lookUp(parentOf(folder));
    const boundTo = [tree?.prefix ?? "", folder].filter((part) => part !== "").join("/");
    const placeOf = (kind: IgnorePlace["kind"], name: string): IgnorePlace => {
      const file = folder === "" ? name : `${folder}/${name}`;
      return { kind, absolute: `${root}/${file}`, file, boundTo };
    };
    const own = placeOf("own", IGNORE_FILE);
    return compile(folder, folder, tree === undefined ? [own] : [placeOf("git", GIT_IGNORE), own], above);
  };

  /** Finds the work tree, and reads its rules above the source. */
  const readOutside = (): FolderIgnores => {
    // A repository that is gone for a moment does not let through what it ignores.
    use(treeNow() ?? tree);
    let above = NO_RULES;
    for (const place of placesAbove(tree)) above = compile(place.file, "", [place], above);
    // A repository may ignore all that is not its own, such as the folders of a home.
    const isIgnored = above.scope.test("", true).reason !== undefined;
    if (tree !== undefined && !isIgnored) return above;
    const wasGit = settling?.inForce().some((file) => `/${file}`.endsWith(`/${GIT_IGNORE}`)) === true;
    use(gitignore === true || (gitignore === undefined && wasGit) ? { top: root, prefix: "" } : undefined);
    return NO_RULES;
  };

  const compile = (
    name: string,
    folder: FolderPath,
    places: readonly IgnorePlace[],
    above: FolderIgnores,
  ): FolderIgnores => {
    const before = earlier.get(name);
    const options = { name, folder, places, above, prefix: tree?.prefix ?? "", settling };
    const found =
      above.scope.unreadable === undefined
        ? readFolder(options, before?.name === name ? before : undefined)
        : above;
    known.set(name, found);
    return found;
  };

  return {
    scopeOf: (folder: FolderPath): IgnoreScope => lookUp(folder).scope,
    /** Ignore files that could not be read since the last `refresh`, by folder. */
    unreadable: (): readonly UnreadableIgnore[] => {
      const found = [...known.values()].flatMap(({ scope }) => scope.unreadable ?? []);
      return [...new Set(found)].filter(({ code }) => code !== UNSETTLED);
    },
    /** Doubtful patterns of the files that apply as far as they were needed since the last `refresh`. */
    doubtful: (): readonly DoubtfulPattern[] =>
      [...new Set(known.values())].flatMap(({ contents }) => contents.flatMap(({ doubtful }) => doubtful)),
    /** Checks each file again when it is next needed. Unchanged files are not compiled again. */
    refresh: (): void => {
      earlier = known;
      known = new Map();
      outside = undefined;
    },
    /** Changes with the files that no watcher of the source's folder sees: the work tree around it, and its rules. */
    outsideMark: (): string => {
      const around = treeNow();
      return [around?.top, ...placesAbove(around).map(({ absolute }) => stampAt(absolute))].join(" ");
    },
  };
}

/** The ignore files of a work tree above a source, the outermost first. */
function placesAbove(tree: WorkTree | undefined): readonly IgnorePlace[] {
  if (tree === undefined || tree.prefix === "") return [];
  const names = tree.prefix.split("/");
  return names.map((_, depth) => {
    const boundTo = names.slice(0, depth).join("/");
    const file = `${"../".repeat(names.length - depth)}${GIT_IGNORE}`;
    return { kind: "git", absolute: join(tree.top, boundTo, GIT_IGNORE), file, boundTo };
  });
}

/** Reads the ignore files of a folder, and joins them with those above. */
function readFolder(
  {
    name,
    folder,
    places,
    above,
    prefix,
    settling,
  }: {
    readonly name: string;
    readonly folder: FolderPath;
    readonly places: readonly IgnorePlace[];
    readonly above: FolderIgnores;
    readonly prefix: FolderPath;
    readonly settling: IgnoreSettling | undefined;
  },
  before: FolderIgnores | undefined,
): FolderIgnores {
  const closed = (file: RelativePath, why: UnknownIgnore): FolderIgnores => {
    const scope = { ...NOTHING_IGNORED, unreadable: { path: folder, file, ...why } };
    return { ...NO_RULES, name, above, scope };
  };
  const contents: IgnoreContents[] = [];
  for (const [index, place] of places.entries()) {
    const { file, absolute } = place;
    const found = readIgnoreFile(place, before?.contents[index]);
    if ("code" in found) return closed(file, found);
    if (settling !== undefined) {
      const isGone = found.hash === undefined && settling.hasInForce(file) && !isFolderAt(dirname(absolute));
      // A missing folder has nothing to let through, and may come back with its rules.
      if (isGone) return above;
      if (!settling.counts(file, found))
        return closed(file, settling.isOverdue(file) ? STILL_CHANGING : CHANGED);
    }
    contents.push(found);
  }
  if (before?.above === above && contents.every((each, index) => each === before.contents[index]))
    return before;
  const patterns: Record<IgnorePlace["kind"], Pattern[]> = { git: [...above.git], own: [...above.own] };
  // Git asks the deepest file first. In one list, where the last match decides, the deepest comes last.
  for (const [index, { kind }] of places.entries()) patterns[kind].push(...(contents[index]?.patterns ?? []));
  if (contents.every((each) => each.patterns.length === 0)) return above;
  return { name, contents, above, scope: scopeOver([...patterns.git, ...patterns.own], prefix), ...patterns };
}

export function isFolderAt(absolute: string): boolean {
  try {
    return statSync(absolute, { throwIfNoEntry: false })?.isDirectory() === true;
  } catch (error) {
    return !isAbsence(error); // an inaccessible path may be a folder
  }
}

/**
 * Returns the path by which a source at `root` knows an ignore file of the source at `from`; undefined if it does not count
 * there: above a source, only Git's do.
 */
export function ignoreFileSeenFrom(root: string, from: string, file: RelativePath): string | undefined {
  const seen = relative(root, join(from, file));
  return !seen.startsWith("../") || /^(?:\.\.\/)+\.gitignore$/.test(seen) ? seen : undefined;
}

function scopeOver(patterns: readonly Pattern[], prefix: FolderPath): IgnoreScope {
  const start = prefix === "" ? "" : `${prefix}/`;
  // Git's default on Linux: names differ by case.
  const fresh = (): ReturnType<typeof ignore> => ignore({ ignorecase: false });
  let matcher = fresh().add(patterns);
  let tests = 0;
  return {
    unreadable: undefined,
    test: (path, isFolder) => {
      if (++tests > TESTS_MAX) {
        matcher = fresh().add(matcher); // shares the compiled patterns, drops the cached paths
        tests = 1;
      }
      // Programs compose letters in either way, and a person sees no difference.
      const at = (path === "" ? prefix : start + path).normalize("NFC");
      const { ignored, unignored, rule } = matcher.test(isFolder ? `${at}/` : at);
      return {
        reason: ignored ? `left out by ${rule?.mark ?? IGNORE_FILE}` : undefined,
        isIncluded: unignored,
      };
    },
  };
}

function parentOf(path: string): string {
  const slash = path.lastIndexOf("/");
  return slash === -1 ? "" : path.slice(0, slash);
}
