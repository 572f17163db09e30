import { lstatSync, readFileSync, realpathSync, statSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { codeOf } from "../../../lib/failure.ts";

/** Name of Git's ignore files. */
export const GIT_IGNORE = ".gitignore";

/** The Git work tree that contains a source. */
export interface WorkTree {
  /** Its top folder, without links. */
  readonly top: string;
  /** The source's folder below the top; "" for the top itself. */
  readonly prefix: string;
}

/** Returns the Git work tree around a folder; undefined if there is none, or no folder. */
export function workTreeAround(folder: string): WorkTree | undefined {
  const real = realPathOf(folder);
  for (let at = real; at !== undefined; at = dirname(at) === at ? undefined : dirname(at))
    if (real !== undefined && isWorkTree(at)) return { top: at, prefix: relative(at, real) };
  return undefined;
}

/** Whether a folder is the top of a work tree: it has a repository, or a file that names one, as in submodules. */
export function isWorkTree(folder: string): boolean {
  try {
    const git = join(folder, ".git");
    const stats = lstatSync(git, { throwIfNoEntry: false });
    return stats?.isFile() === true || statSync(join(git, "HEAD"), { throwIfNoEntry: false }) !== undefined;
  } catch {
    return false;
  }
}

/** The file of a work tree's repository that excludes files without being part of it. */
export function excludeFileOf(top: string): string {
  return join(commonFolder(join(top, ".git")), "info", "exclude");
}

/** A person's own file of patterns for all repositories. */
export interface OwnPatterns {
  /** Its path; "" if there is none. */
  readonly file: string;
  /** The configuration files of Git that may name it. */
  readonly namedBy: readonly string[];
}

/**
 * Finds the file that `core.excludesFile` names for a work tree, by default `git/ignore` in the configuration folder
 * (gitignore(5)). Files that a configuration includes are not read.
 */
export function ownPatternsFor(top: string, env: NodeJS.ProcessEnv = process.env): OwnPatterns {
  const home = env["HOME"] ?? "";
  const xdg = env["XDG_CONFIG_HOME"] ?? "";
  const folder = join(xdg === "" ? join(home, ".config") : xdg, "git");
  const namedBy = [
    "/etc/gitconfig",
    join(folder, "config"),
    join(home, ".gitconfig"),
    join(commonFolder(join(top, ".git")), "config"),
  ];
  const named = namedBy
    .map((file) => excludesFileIn(textOf(file) ?? ""))
    .findLast((path) => path !== undefined);
  if (named === "" || named === "/dev/null") return { file: "", namedBy };
  const file = named === undefined ? join(folder, "ignore") : resolve(top, named.replace(/^~(?=\/)/, home));
  return { file: isShut(file) ? "" : file, namedBy };
}

/** Whether a folder on the way to a file is closed to this user: then the file is another person's, as Git takes it. */
function isShut(file: string): boolean {
  try {
    statSync(file, { throwIfNoEntry: false });
    return false;
  } catch (error) {
    return codeOf(error) === "EACCES";
  }
}

/** The value of `core.excludesFile` in a text of configuration; the last one counts. Undefined: it has none. */
function excludesFileIn(text: string): string | undefined {
  let section: string | undefined;
  let value: string | undefined;
  for (const line of text.split("\n")) {
    const [head, name] = /^\s*\[\s*([^\]]*?)\s*\]/.exec(line) ?? [""];
    section = name?.toLowerCase() ?? section;
    const found = EXCLUDES_FILE.exec(line.slice(head.length));
    if (section === "core" && found !== null) value = found[1]?.replaceAll(/\\(.)/g, "$1") ?? found[2] ?? "";
  }
  return value;
}

/** A value may be in quotes, and a comment may follow it (git-config(1)). */
const EXCLUDES_FILE = /^\s*excludesfile\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^#;]*?))\s*(?:[#;].*)?$/i;

/** Follows `.git` to the repository, which several work trees may share. */
function commonFolder(git: string): string {
  const named = textOf(git);
  const repository = named === undefined ? git : resolve(dirname(git), named.replace(/^gitdir:\s*/, ""));
  return resolve(repository, textOf(join(repository, "commondir")) ?? "");
}

/** The text of a small file; undefined if there is no such file. */
function textOf(file: string): string | undefined {
  try {
    return statSync(file).isFile() ? readFileSync(file, "utf8").trim() : undefined;
  } catch {
    return undefined;
  }
}

function realPathOf(folder: string): string | undefined {
  try {
    return realpathSync(folder);
  } catch {
    return undefined; // missing: the scan reports it
  }
}
