import { statSync } from "node:fs";
import { join } from "node:path";
import ignore from "ignore";
import { codeOf } from "../../../lib/failure.ts";
import type { RelativePath, Unreadable, FolderPath } from "../../plan/model.ts";
import type { IgnoreSettling } from "./ignore-settling.ts";
import {
  type DoubtfulPattern,
  type IgnoreReader,
  openIgnoreReader,
  type Pattern,
  type Place,
  UNSETTLED,
  UNSETTLED_LONG,
} from "./ignore-reader.ts";
import { gitPlaces, IGNORE_FILE, ownPlace, stampOf } from "./ignore-places.ts";
import { GIT_IGNORE, type WorkTree, workTreeAround } from "./work-tree.ts";

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
  /** The ignore file as seen from the source; undefined: a mount is the reason. */
  readonly file?: string;
}

/** The scope without ignore files. */
export const NOTHING_IGNORED: IgnoreScope = {
  unreadable: undefined,
  test: () => ({ reason: undefined, isIncluded: false }),
};

/** Reads each ignore file when it is first needed, and caches it. */
export type IgnoreFiles = ReturnType<typeof openIgnoreFiles>;

/** The rules inside a folder: its own scope, or that of the folder above. */
interface Known {
  /** Identifies the files of the folder; undefined: it has none. */
  readonly hash: string | undefined;
  readonly above: Known | undefined;
  readonly scope: IgnoreScope;
  /** Git's patterns come first: the last match decides, and what a person excludes here stays excluded. */
  readonly git: readonly Pattern[];
  readonly own: readonly Pattern[];
  /** Of the folder's own files. */
  readonly doubtful: readonly DoubtfulPattern[];
}

const OUTSIDE: Known = {
  hash: undefined,
  above: undefined,
  scope: NOTHING_IGNORED,
  git: [],
  own: [],
  doubtful: [],
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
  const read = openIgnoreReader();
  let known = new Map<string, Known>();
  let earlier = new Map<string, Known>();
  /** Without a work tree, `.gitignore` files do not count. */
  let tree: WorkTree | undefined;
  /** The rules above the source. Undefined: to be read. */
  let outside: Known | undefined;
  const treeNow = (): WorkTree | undefined => (gitignore === false ? undefined : workTreeAround(root));
  const unseen = openUnseenChanges(() => treeNow()?.top);

  const lookUp = (folder: string): Known => {
    const cached = known.get(folder);
    if (cached !== undefined) return cached;
    const above = folder === "" ? (outside ??= readOutside()) : lookUp(parentOf(folder));
    const shown = folder === "" ? "" : `${folder}/`;
    const boundTo = [tree?.prefix ?? "", folder].filter((part) => part !== "").join("/");
    const git = tree === undefined ? [] : gitPlaces(`${root}/${folder}`, shown, boundTo, settling);
    const places = [...git, ownPlace(root, folder, shown, boundTo)];
    // The repository of an inner work tree knows nothing of the outer one's rules.
    const isTop = git.length > 1 && folder !== "";
    return compile(folder, folder, places, isTop ? { ...above, git: [] } : above, above);
  };

  /** Finds the work tree, and reads its rules above the source. */
  const readOutside = (): Known => {
    // A repository that is gone for a moment does not let through what it ignores.
    use(treeNow() ?? tree);
    const above = compileAbove();
    // A repository may ignore all that is not its own, such as the folders of a home.
    const isIgnored = above.scope.test("", true).reason !== undefined;
    if (tree !== undefined && !isIgnored) return above;
    const counts = gitignore === true || (gitignore === undefined && settling?.knows(GIT_IGNORE) === true);
    use(counts ? { top: root, prefix: "" } : undefined);
    return OUTSIDE;
  };
  const use = (next: WorkTree | undefined): void => {
    if (next?.top !== tree?.top || next?.prefix !== tree?.prefix) earlier = new Map();
    tree = next;
  };
  const compileAbove = (): Known => {
    if (tree === undefined || tree.prefix === "") return OUTSIDE;
    const names = tree.prefix.split("/");
    let above = OUTSIDE;
    for (const depth of names.keys()) {
      const folder = names.slice(0, depth).join("/");
      const up = "../".repeat(names.length - depth);
      above = compile(up, "", gitPlaces(join(tree.top, folder), up, folder, settling), above, above);
    }
    return above;
  };

  /** `from` are the rules that the folder's own ones join, and `above` those of the folder above. */
  const compile = (
    name: string,
    folder: FolderPath,
    places: readonly Place[],
    from: Known,
    above: Known,
  ): Known => {
    for (const place of places) unseen.note(place.unwatched);
    const before = earlier.get(name);
    const found =
      above.scope.unreadable === undefined
        ? compilePlaces({ folder, places, from, above, before, prefix: tree?.prefix ?? "" }, read, settling)
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
      [...new Set(known.values())].flatMap(({ doubtful }) => doubtful),
    /** Checks each file again when it is next needed. Unchanged files are not compiled again. */
    refresh: (): void => {
      earlier = known;
      known = new Map();
      outside = undefined;
    },
    /**
     * Whether, since the last call, a file that no watcher of the source's folder sees has changed, or the work tree is another
     * one. However often the rules were read meanwhile.
     */
    haveChangedUnseen: (): boolean => {
      // Nothing may have asked for the rules since the last refresh.
      outside ??= readOutside();
      return unseen.haveChanged();
    },
  };
}

/** Compares the files that no watcher sees, and the work tree, with what they were at the last comparison. */
function openUnseenChanges(topNow: () => string | undefined) {
  let top = topNow();
  /** As they were when last compared, or just before they were first read. */
  const stamps = new Map<string, string>();
  return {
    note: (files: readonly string[]): void => {
      for (const file of files) if (!stamps.has(file)) stamps.set(file, stampOf(file));
    },
    haveChanged: (): boolean => {
      const changed = [...stamps].filter(([file, stamp]) => stampOf(file) !== stamp);
      for (const [file] of changed) stamps.set(file, stampOf(file));
      const before = top;
      top = topNow();
      return top !== before || changed.length > 0;
    },
  };
}

/** Reads the ignore files of a folder, and joins them with those above. */
function compilePlaces(
  {
    folder,
    places,
    from,
    above,
    before,
    prefix,
  }: {
    readonly folder: FolderPath;
    readonly places: readonly Place[];
    readonly from: Known;
    readonly above: Known;
    readonly before: Known | undefined;
    readonly prefix: FolderPath;
  },
  read: IgnoreReader,
  settling: IgnoreSettling | undefined,
): Known {
  const patterns: Record<Place["kind"], Pattern[]> = { git: [...from.git], own: [...from.own] };
  const doubtful: DoubtfulPattern[] = [];
  const hashes: string[] = [];
  for (const place of places) {
    const found = read(place);
    if ("code" in found) return closed(folder, place, above, found.code);
    const { key, kind } = place;
    if (settling !== undefined) {
      const isGone = found.version.hash === undefined && settling.hasRules(key) && !isFolderAt(place.folder);
      // A missing folder has nothing to let through, and may come back with its rules.
      if (isGone) return above;
      if (!settling.counts(key, found.version))
        return closed(folder, place, above, settling.isOverdue(key) ? UNSETTLED_LONG : UNSETTLED);
    }
    // Git asks the deepest file first. In one list, where the last match decides, the deepest comes last.
    patterns[kind].push(...found.patterns);
    doubtful.push(...found.doubtful);
    hashes.push(found.version.hash ?? "");
  }
  const hash = hashes.join(" ");
  if (hash.trim() === "" && from === above) return above;
  if (before?.hash === hash && before.above === above) return before;
  return { hash, above, scope: scopeOver([...patterns.git, ...patterns.own], prefix), ...patterns, doubtful };
}

export function isFolderAt(absolute: string): boolean {
  try {
    return statSync(absolute, { throwIfNoEntry: false })?.isDirectory() === true;
  } catch (error) {
    const code = codeOf(error);
    return code !== "ENOENT" && code !== "ENOTDIR"; // an inaccessible path may be a folder
  }
}

function closed(folder: FolderPath, { shown: file }: Place, above: Known, code: string): Known {
  const unreadable = { path: folder, code, file };
  return {
    hash: undefined,
    above,
    scope: { ...NOTHING_IGNORED, unreadable },
    git: [],
    own: [],
    doubtful: [],
  };
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
