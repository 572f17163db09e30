import type { SourceConfig } from "../../config/schema.ts";
import type { Settings } from "../../wire/primitives.ts";
import type { RelativePath, Unreadable } from "../plan/model.ts";
import { openRealRoot, type RealRoot } from "../disk/place.ts";
import type { FolderPath } from "../disk/folder-path.ts";
import { openFollowedLinks, type FollowedLinks } from "./followed-links.ts";
import { compileGlob } from "./globs.ts";
import { IGNORE_FILE, NOTHING_IGNORED, openIgnoreFiles, UNSETTLED } from "./ignore-files.ts";
import {
  type IgnoreRest,
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

/** A source as the daemon uses it: its configuration, with the folder's absolute path and its owner settled. */
export type WatchedSource = SourceConfig & {
  readonly absolutePath: string;
  readonly ownerId: string;
  /** The systemd unit that shows this process nothing at the path that was not there when the unit started. */
  readonly unit?: string;
};

/** Whether a path belongs to the source; if not, why, in words for a person. */
export type Verdict = { readonly wanted: true } | { readonly wanted: false; readonly reason: string };

/** What the configuration says of one file's recipe, before its content is known. */
export interface RecipeParts {
  readonly settings: Settings;
  /** Template with {path}, {name} and {title}. */
  readonly title?: string;
  /** Template with {path}, {name} and {title}. */
  readonly description?: string;
}

/** The rules inside one folder that is itself wanted. Both take the full path and the name at its end. */
export interface FolderRules {
  /**
   * Set: nothing may be decided at or below its folder. An ignore file here or above cannot be read, or was changed and has
   * not settled yet (`UNSETTLED`), or a mount here is not as it was.
   */
  readonly unreadable: Unreadable | undefined;
  file(path: RelativePath, name: string): Verdict;
  folder(path: RelativePath, name: string): Verdict;
}

/**
 * Which files of a source are synced, and how. Every path is relative to the source. Answers depend on the path and on
 * the ignore files alone, never on whether the path exists.
 */
export interface Rules {
  readonly source: WatchedSource;
  /** What the source's folder is in truth, as last looked up. */
  readonly realRoot: RealRoot;
  /** What is mounted below the source's folder; undefined where nobody remembers it. */
  readonly mounts: SubMounts | undefined;
  /** The links that scans followed, for the watcher; empty unless the source follows links. */
  readonly links: FollowedLinks;
  /** Whether a file of this path is synced. The folders above it are asked first. */
  wants(path: RelativePath): Verdict;
  /** Whether a scan and the watcher go into this folder. The folders above it are asked first. */
  entersFolder(path: RelativePath): Verdict;
  /** The rules inside a folder, for a walk that comes from above and has asked for each folder on the way. */
  inFolder(path: FolderPath): FolderRules;
  recipeParts(path: RelativePath): RecipeParts;
  /** Whether this is an ignore file: when it changes, `reload` and look at the whole source again. */
  isRulesFile(path: RelativePath): boolean;
  /** Has ignore files that changed read again when they are next needed. Every scan begins with it. */
  reload(): void;
  /** Ignore files that could not be read since the last `reload`, by their folders. */
  unreadableIgnoreFiles(): readonly Unreadable[];
  /** When the changed ignore files will have settled that were met since the last call; undefined: none was. */
  takeIgnoreRest(): IgnoreRest | undefined;
  /**
   * Ignore files that came into force or went out of it since the last call, for the ledger. `whole`: the last scan went
   * through the whole source, so that rules of folders that are gone are forgotten.
   */
  takeSettled(whole: boolean): readonly SettledIgnore[];
}

const WANTED: Verdict = { wanted: true };

/** What is remembered of a source, by those who send what its rules let through. */
export interface RulesMemory {
  readonly ignoreFiles: IgnoreSettlingOptions;
  readonly mounts: SubMountOptions;
}

/**
 * Opens the rules of a source. Ignore files are read when first needed. Without a memory each counts as it is read, and
 * mounts are folders like any other.
 */
export function openRules(source: WatchedSource, memory?: RulesMemory): Rules {
  const settling = memory && openIgnoreSettling(memory.ignoreFiles);
  const mounts = memory && openSubMounts(source.absolutePath, memory.mounts);
  const ignoreFiles = openIgnoreFiles(source.absolutePath, settling);
  const include = source.include.map(compileGlob);
  const exclude = source.exclude.map(compileGlob);
  const rules = source.rules.map((rule) => ({ glob: compileGlob(rule.match), rule }));

  const inFolder = (folder: FolderPath): FolderRules => {
    const closed = mounts?.closedAt(folder);
    // Its own ignore file is not asked for: it may be on the disk that is not there.
    const scope =
      closed === undefined ? ignoreFiles.scopeOf(folder) : { ...NOTHING_IGNORED, unreadable: closed };
    const byName = (path: RelativePath, name: string, isFolder: boolean): string | undefined => {
      if (name.startsWith(".")) return isFolder ? "a hidden folder" : "a hidden file";
      return passingReason(name) ?? scope.reasonFor(path, isFolder);
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

  const ask = (path: RelativePath, isFolder: boolean): Verdict => {
    let inside: FolderPath = "";
    for (;;) {
      const above = inFolder(inside);
      if (above.unreadable !== undefined) return { wanted: false, reason: cannotTell(above.unreadable) };
      const start = inside === "" ? 0 : inside.length + 1;
      const end = path.indexOf("/", start);
      if (end === -1) return above[isFolder ? "folder" : "file"](path, path.slice(start));
      inside = path.slice(0, end);
      const verdict = above.folder(inside, path.slice(start, end));
      if (!verdict.wanted) return { wanted: false, reason: `in ${inside}: ${verdict.reason}` };
    }
  };

  return {
    source,
    realRoot: openRealRoot(source.absolutePath),
    mounts,
    links: openFollowedLinks(),
    wants: (path) => ask(path, false),
    entersFolder: (path) => ask(path, true),
    inFolder,
    recipeParts: (path) => {
      const matching = rules.filter(({ glob }) => glob.matchesFile(path)).map(({ rule }) => rule);
      const title = matching.findLast((rule) => rule.title !== undefined)?.title;
      const description = matching.findLast((rule) => rule.description !== undefined)?.description;
      return {
        settings: matching.findLast((rule) => rule.settings !== undefined)?.settings ?? source.settings,
        ...(title !== undefined && { title }),
        ...(description !== undefined && { description }),
      };
    },
    isRulesFile: (path) => path === IGNORE_FILE || path.endsWith(`/${IGNORE_FILE}`),
    reload: () => {
      ignoreFiles.refresh();
      settling?.begin();
    },
    unreadableIgnoreFiles: () => ignoreFiles.unreadable(),
    takeIgnoreRest: () => settling?.takeRest(),
    takeSettled: (whole) => {
      if (settling === undefined) return [];
      if (whole) {
        for (const folder of settling.unasked()) if (!ignoreFiles.isFolder(folder)) settling.forget(folder);
      }
      return settling.takeSettled();
    },
  };
}

function excludedBy(glob: string | undefined): string | undefined {
  return glob === undefined ? undefined : `left out by \`${glob}\` in \`exclude\``;
}

function cannotTell({ path, code }: Unreadable): string {
  if (code === UNMOUNTED) return `the disk that was mounted at ${path} is not mounted`;
  if (code === MOUNTED_OVER) return `something is mounted over ${path} and hides its files`;
  const file = path === "" ? IGNORE_FILE : `${path}/${IGNORE_FILE}`;
  if (code === UNSETTLED) return `${file} was changed a moment ago, and counts once it has settled`;
  return `${file} cannot be read (${code})`;
}

/** One family of files that programs leave beside the documents: never documents themselves. */
interface PassingFile {
  readonly reason: string;
  readonly pattern: RegExp;
}

/**
 * Names of editors' temporary files, backups and unfinished downloads, each as its program writes it. Names that start
 * with a dot are not here: every hidden file is left out.
 */
const PASSING_FILES: readonly PassingFile[] = [
  { reason: "an editor's backup (its name ends in ~)", pattern: /~$/ },
  // Vim tests whether it may write a folder with a file named 4913, or a number a little higher.
  { reason: "a temporary file of Vim", pattern: /^(?:4913|5036|5159|.+\.sw[a-z]|.+\.un~)$/ },
  { reason: "a temporary file of Emacs", pattern: /^#.*#$/ },
  // As `kbsync backup` names it in a folder that is there: its manifest holds the addresses of uploads.
  { reason: "a backup of kbsync's", pattern: /^kbsync-\d{8}T\d{6}Z(?:\.partial-\d+)?$/ },
  { reason: "a lock file of an office program", pattern: /^~\$|^~WRL\d+\.tmp$|^~WRD\d+\.tmp$/i },
  { reason: "a temporary file of a JetBrains editor", pattern: /___jb_(?:tmp|old|bak)___$/ },
  { reason: "a temporary file of Kate", pattern: /\.kate-swp$/ },
  // `name.tmp`, `name.tmp.4711.1700000000` (npm's write-file-atomic has `name.1234567890`), `name.tmp-abc123`, Sublime's `.subl1a2.tmp`.
  { reason: "a temporary file", pattern: /\.(?:tmp|temp)(?:[.-][\w.-]*)?$|\.sb-[0-9a-f]{8}-\w{6}$/i },
  {
    reason: "an unfinished download",
    pattern: /\.(?:part|partial|crdownload|download|!ut|!qb|aria2|opdownload|filepart|td|xltd)$/i,
  },
];

/** Any of the above, as one expression: nearly every name fails it, and this runs for every file of a scan. */
const ANY = new RegExp(PASSING_FILES.map(({ pattern }) => `(?:${pattern.source})`).join("|"), "i");

/** Why a file or folder of this name is never a document, in words; undefined when the name says nothing of the kind. */
function passingReason(name: string): string | undefined {
  if (!ANY.test(name)) return undefined;
  return PASSING_FILES.find(({ pattern }) => pattern.test(name))?.reason;
}
