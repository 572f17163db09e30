import { lstatSync } from "node:fs";
import { dirname, join } from "node:path";
import type { SourceConfig } from "../../../config/schema.ts";
import type { OnDisk } from "../../../wire/daemon-files.ts";
import { isSameRoot } from "../../plan/brakes.ts";
import type { FolderPath, RelativePath, RootIdentity } from "../../plan/model.ts";
import { scopeTest } from "../../plan/scope.ts";
import { openRealRoot } from "../disk/file-location.ts";
import { rootIdentityOf } from "../disk/root-identity.ts";
import { DESCRIPTION_FILE, openFolderDescriptions } from "./folder-descriptions.ts";
import { compileGlob, type Glob } from "./globs.ts";
import {
  IGNORE_FILE,
  type IgnoreFiles,
  isFolderAt,
  NOTHING_IGNORED,
  openIgnoreFiles,
  type UnreadableIgnore,
} from "./ignore-files.ts";
import {
  type IgnoreRest,
  type IgnoreSettling,
  type IgnoreSettlingOptions,
  openIgnoreSettling,
  type SettledIgnore,
} from "./ignore-settling.ts";
import {
  MOUNTED_OVER,
  openSubMounts,
  type SubMountOptions,
  type SubMounts,
  UNMOUNTED,
} from "./sub-mounts.ts";
import { madeFolderReason } from "./made-folders.ts";
import { GIT_IGNORE } from "./work-tree.ts";

/** A configured source, with the folder's absolute path and its owner resolved. */
export type WatchedSource = SourceConfig & {
  readonly absolutePath: string;
  readonly ownerId: string;
  /** Folders of other sources below this one, relative to it. */
  readonly innerFolders?: readonly FolderPath[];
  /** The systemd unit that hides from this process everything at the path that was absent when the unit started. */
  readonly unit?: string;
};

/** Whether a path belongs to the source; if not, the reason, for a person. */
export type Verdict =
  | { readonly wanted: true }
  | {
      readonly wanted: false;
      readonly reason: string;
      /** The rules at its place cannot be read, so that nothing there is sent or deleted. */
      readonly isUnknown?: true;
    };

/** A rule that describes the files that it matches. */
type DescriptionRule = SourceConfig["rules"][number] & { readonly description: string };

/** Metadata that the configuration fixes, by name. */
type FixedMetadata = NonNullable<SourceConfig["rules"][number]["metadata"]>;

/** The rules inside one wanted folder. Both methods take the full path and its last name. */
export interface FolderRules {
  /**
   * If set, nothing at or below its folder may be decided: an ignore file here or above cannot be read or has not settled
   * yet (`UNSETTLED`), or a mount here differs from the known one.
   */
  readonly unreadable: UnreadableIgnore | undefined;
  file(path: RelativePath, name: string): Verdict;
  folder(path: RelativePath, name: string): Verdict;
}

/**
 * Decides which files of a source are synced, and how. Every path is relative to the source. Answers depend only on the path
 * and on the ignore files, never on whether the path exists.
 */
export type Rules = ReturnType<typeof openRules>;

const WANTED: Verdict = { wanted: true };
const RULES_FILES: ReadonlySet<string> = new Set([IGNORE_FILE, GIT_IGNORE, DESCRIPTION_FILE]);

/** State of a source that outlives the process, for callers that send what its rules let through. */
export interface RulesMemory {
  readonly ignoreFiles: IgnoreSettlingOptions;
  /** Identities of the folders of other sources inside this one, wherever they are now. */
  readonly innerRoots?: () => readonly RootIdentity[];
  readonly mounts: SubMountOptions;
}

/**
 * Opens the rules of a source. Reads ignore files when they are first needed. Without a memory, each applies as it is, and
 * mounts are ordinary folders.
 */
export function openRules(source: WatchedSource, memory?: RulesMemory) {
  const settling = memory && openIgnoreSettling(memory.ignoreFiles);
  const mounts = memory && openSubMounts(source.absolutePath, memory.mounts);
  const ignoreFiles = openIgnoreFiles(source.absolutePath, { gitignore: source.gitignore, settling });
  const globOf = (text: string): Glob =>
    compileGlob(text.startsWith(`${source.absolutePath}/`) ? text.slice(source.absolutePath.length) : text);
  const include = source.include.map(globOf);
  const exclude = source.exclude.map(globOf);
  const rules = source.rules.map((rule) => ({ ...rule, glob: globOf(rule.match) }));
  const isDescribed = (rule: (typeof rules)[number]): rule is typeof rule & DescriptionRule =>
    rule.description !== undefined;
  const described = rules.filter(isDescribed);
  const secrets = source.allowSecrets.map(globOf);
  const descriptions = openFolderDescriptions(source.absolutePath);

  const isInner = scopeTest(source.innerFolders ?? []);
  const innerRoots = openInnerRoots(source.absolutePath, memory?.innerRoots);
  const inFolder = openFolderRules(source, {
    include,
    exclude,
    ignoreFiles,
    mounts,
    isInner,
    innerRoots,
  });

  return {
    source,
    /** The real path of the source's folder, as last resolved. */
    realRoot: openRealRoot(source.absolutePath),
    /** The mounts below the source's folder; undefined without a memory of them. */
    mounts,
    /** Whether a file at this path is synced. Checks the folders above it too. */
    wants: (path: RelativePath): Verdict => verdictOn(path, "file", inFolder),
    /** Whether a scan and the watcher enter this folder. Checks the folders above it too. */
    entersFolder: (path: RelativePath): Verdict => verdictOn(path, "folder", inFolder),
    /** Whether what exists at a path is synced: a folder is entered, and a link never followed. */
    takes: (path: RelativePath, kind: OnDisk["kind"]): Verdict => {
      const [asFile, asFolder] = [verdictOn(path, "file", inFolder), verdictOn(path, "folder", inFolder)];
      if (kind === "link") return { wanted: false, reason: linkReason(asFile, asFolder) };
      return kind === "folder" ? asFolder : asFile;
    },
    /** Whether a path is at or below the folder of another source inside this one. */
    isInner,
    /** The rules inside a folder, for a walk that descends from the root and has checked each folder on the way. */
    inFolder,
    /** The last rule with a description that matches. Its text has the placeholders {path}, {name} and {title}. */
    descriptionRule: (path: RelativePath): DescriptionRule | undefined =>
      described.findLast(({ glob }) => glob.matchesFile(path)),
    /** Whether the configuration lets this file leave although a secret may be in it. */
    allowsSecrets: (path: RelativePath): boolean => secrets.some((glob) => glob.matchesFile(path)),
    /** Metadata of the rules that match; a later rule overrides an earlier one. */
    fixedMetadata: (path: RelativePath): FixedMetadata =>
      Object.fromEntries(
        rules.flatMap(({ glob, metadata = {} }) => (glob.matchesFile(path) ? Object.entries(metadata) : [])),
      ),
    /** The descriptions of a file's folders, outermost first; undefined: they have none. Reads them when first needed. */
    folderDescription: (path: RelativePath): string | undefined =>
      descriptions.in(path.slice(0, Math.max(0, path.lastIndexOf("/")))),
    /** Whether this is an ignore file or describes a folder. After a change of one, call `reload` and scan the whole source. */
    isRulesFile: (path: RelativePath): boolean => RULES_FILES.has(path.slice(path.lastIndexOf("/") + 1)),
    /** Checks ignore files and descriptions for changes when they are next needed. Every scan starts with it. */
    reload: (): void => {
      ignoreFiles.refresh();
      innerRoots.refresh();
      descriptions.refresh();
    },
    /** Changes with the rules that no watcher of the source's folder sees. */
    outsideMark: ignoreFiles.outsideMark,
    /** Ignore files that could not be read since the last `reload`, by folder. */
    unreadableIgnoreFiles: ignoreFiles.unreadable,
    /** Patterns of ignore files, met since the last `reload`, that may not mean what their writers expect. */
    doubtfulPatterns: ignoreFiles.doubtful,
    /** When the changed ignore files that were met since the last call will have settled; undefined if there are none. */
    takeIgnoreRest: (): IgnoreRest | undefined => settling?.takeRest(),
    /**
     * Ignore files that came into force, or ceased to be in force, since the last call, for the ledger. `whole`: the last scan
     * covered the whole source, so rules of folders that no longer exist are removed.
     */
    takeSettled: (whole: boolean): readonly SettledIgnore[] => {
      if (whole && settling !== undefined) forgetGoneFolders(settling, source.absolutePath);
      return settling?.takeSettled() ?? [];
    },
  };
}

/** Opens the folders of sources inside this one, wherever they are now. */
function openInnerRoots(root: string, find: RulesMemory["innerRoots"] = () => []) {
  let roots = find();
  return {
    refresh: (): void => void (roots = find()),
    /** Whether a folder is that of a source inside this one, renamed. Its owner did not mean to give its files away. */
    has: (path: FolderPath): boolean => {
      if (roots.length === 0) return false;
      try {
        const identity = rootIdentityOf(lstatSync(`${root}/${path}`));
        return identity.born === true && roots.some((each) => isSameRoot(each, identity));
      } catch {
        return false; // What cannot be looked at is not read.
      }
    },
  };
}

/** What decides about the paths in a folder. */
interface FolderRulesOptions {
  readonly include: readonly Glob[];
  readonly exclude: readonly Glob[];
  readonly ignoreFiles: IgnoreFiles;
  readonly mounts: SubMounts | undefined;
  readonly isInner: (path: RelativePath) => boolean;
  readonly innerRoots: Pick<ReturnType<typeof openInnerRoots>, "has">;
}

/** Returns the rules inside each folder of a source. */
function openFolderRules(
  source: WatchedSource,
  { include, exclude, ignoreFiles, mounts, isInner, innerRoots }: FolderRulesOptions,
): (folder: FolderPath) => FolderRules {
  /** Whether a glob of `include` names a folder that would be left out by default. */
  const isNamed = (name: string): boolean => include.some(({ text }) => text.split("/").includes(name));
  return (folder) => {
    const closed = mounts?.closedAt(folder);
    // Does not read its ignore file, which may be on the missing disk.
    const scope =
      closed === undefined ? ignoreFiles.scopeOf(folder) : { ...NOTHING_IGNORED, unreadable: closed };
    const byName = (path: RelativePath, name: string, isFolder: boolean): string | undefined => {
      if (isFolder && isInner(path)) return "belongs to a source of its own";
      if (isFolder && innerRoots.has(path)) return "the renamed folder of a source of its own";
      if (name.startsWith(".")) return isFolder ? "a hidden folder" : "a hidden file";
      const temporary = temporaryReason(name);
      if (temporary !== undefined) return temporary;
      const { reason, isIncluded } = scope.test(path, isFolder);
      if (reason !== undefined || !isFolder || isIncluded || isNamed(name)) return reason;
      return madeFolderReason(`${source.absolutePath}/${folder}`, name);
    };
    return {
      unreadable: scope.unreadable,
      file: (path, name) => {
        const reason =
          byName(path, name, false) ??
          excludedBy(exclude.find((glob) => glob.matchesFile(path))?.text) ??
          (include.length > 0 && !include.some((glob) => glob.matchesFile(path))
            ? "matches none of the globs in `include`"
            : undefined);
        return reason === undefined ? WANTED : { wanted: false, reason };
      },
      folder: (path, name) => {
        const reason =
          byName(path, name, true) ??
          excludedBy(exclude.find((glob) => glob.coversFolder(path))?.text) ??
          (include.length > 0 && !include.some((glob) => glob.reachesInto(path))
            ? "none of the globs in `include` reaches into this folder"
            : undefined);
        return reason === undefined ? WANTED : { wanted: false, reason };
      },
    };
  };
}

/** Why a symbolic link is left out: by the rule about its name, or because its target may be anywhere. */
export function linkReason(asFile: Verdict, asFolder: Verdict): string {
  return asFile.wanted || asFolder.wanted ? "a symbolic link: no link is followed" : asFile.reason;
}

/** Removes the rules of folders that no longer exist, after a scan of the whole source. */
function forgetGoneFolders(settling: IgnoreSettling, root: string): void {
  for (const file of settling.inForce()) if (!isFolderAt(dirname(join(root, file)))) settling.forget(file);
}

/** Judges a path, after the folders above it. */
function verdictOn(
  path: RelativePath,
  what: "file" | "folder",
  inFolder: (folder: FolderPath) => FolderRules,
): Verdict {
  let inside: FolderPath = "";
  for (;;) {
    const above = inFolder(inside);
    if (above.unreadable !== undefined)
      return { wanted: false, reason: unreadableReason(above.unreadable), isUnknown: true };
    const start = inside === "" ? 0 : inside.length + 1;
    const end = path.indexOf("/", start);
    if (end === -1) return above[what](path, path.slice(start));
    inside = path.slice(0, end);
    const verdict = above.folder(inside, path.slice(start, end));
    if (!verdict.wanted) return { wanted: false, reason: `in ${inside}: ${verdict.reason}` };
  }
}

function excludedBy(glob: string | undefined): string | undefined {
  return glob === undefined ? undefined : `left out by \`${glob}\` in \`exclude\``;
}

function unreadableReason({ path, code, file, words }: UnreadableIgnore): string {
  if (code === UNMOUNTED) return `the disk that was mounted at ${path} is not mounted`;
  if (code === MOUNTED_OVER) return `something is mounted over ${path} and hides its files`;
  return `${file} ${words}`;
}

/** A family of files that programs create next to documents and that are never documents. */
interface TemporaryFile {
  readonly reason: string;
  readonly pattern: RegExp;
}

/**
 * Names of editors' temporary files, backups and unfinished downloads, as each program writes them. Names with a leading
 * dot are missing here because every hidden file is excluded.
 */
const TEMPORARY_FILES: readonly TemporaryFile[] = [
  { reason: "an editor's backup (its name ends in ~)", pattern: /~$/ },
  // Vim tests whether it can write to a folder with a file named 4913, or a slightly higher number.
  { reason: "a temporary file of Vim", pattern: /^(?:4913|5036|5159|.+\.sw[a-z]|.+\.un~)$/ },
  { reason: "a temporary file of Emacs", pattern: /^#.*#$/ },
  // The name that `kbsync backup` uses in an existing folder: its manifest holds the addresses of uploads.
  { reason: "a backup of kbsync's", pattern: /^kbsync-\d{8}T\d{6}Z(?:\.partial-\d+)?$/ },
  { reason: "a lock file of an office program", pattern: /^~\$|^~WRL\d+\.tmp$|^~WRD\d+\.tmp$/i },
  { reason: "a temporary file of a JetBrains editor", pattern: /___jb_(?:tmp|old|bak)___$/ },
  { reason: "a temporary file of Kate", pattern: /\.kate-swp$/ },
  // `name.tmp`, `name.tmp.4711.1700000000` (npm's write-file-atomic has `name.1234567890`), `name.tmp-abc123`,
  // Sublime's `.subl1a2.tmp`.
  { reason: "a temporary file", pattern: /\.(?:tmp|temp)(?:[.-][\w.-]*)?$|\.sb-[0-9a-f]{8}-\w{6}$/i },
  {
    reason: "an unfinished download",
    pattern: /\.(?:part|partial|crdownload|download|!ut|!qb|aria2|opdownload|filepart|td|xltd)$/i,
  },
];

/** All patterns as one expression: it runs for every file of a scan, and nearly every name fails it. */
const ANY = new RegExp(TEMPORARY_FILES.map(({ pattern }) => `(?:${pattern.source})`).join("|"), "i");

/** Why a file or folder of this name is never a document, for a person; undefined if the name does not show it. */
function temporaryReason(name: string): string | undefined {
  if (!ANY.test(name)) return undefined;
  return TEMPORARY_FILES.find(({ pattern }) => pattern.test(name))?.reason;
}
