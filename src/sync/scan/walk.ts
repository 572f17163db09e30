import { lstatSync, readdirSync, type Stats } from "node:fs";
import { codeOf } from "../../lib/failure.ts";
import { integerColumn } from "../../lib/integer-column.ts";
import { refusalBySize } from "../document/bounds.ts";
import { kindOfName } from "../document/kinds.ts";
import type { RelativePath, ScanEntry, Skip, Unreadable } from "../plan/model.ts";
import type { FolderPath } from "../disk/folder-path.ts";
import type { FolderRules, Rules } from "../rules/rules.ts";
import { linkedIno } from "../disk/linked-ino.ts";
import { excludedFacts, openFollower, type Follower } from "./follow.ts";

/** The results of a walk. */
export interface Found {
  readonly entries: readonly ScanEntry[];
  readonly unreadable: readonly Unreadable[];
  readonly refused: readonly { readonly path: RelativePath; readonly reason: string }[];
  readonly skipped: readonly Skip[];
}

/** A walk through a source that can be interrupted after every file. */
export interface Walk {
  /** Grows during the walk. */
  readonly found: Found;
  /** Why the root itself could not be listed; undefined if it could. */
  rootFailure(): string | undefined;
  /** Adds a file, or a folder with all below it. Checks the folders above it first. "" is the root. */
  begin(path: FolderPath): void;
  /** Works for about `sliceMs`. Returns false when nothing is left. */
  advance(sliceMs: number): boolean;
  /** Ends a finished walk: removes links in the scope (undefined: the whole source) that it did not find. */
  end(scope: readonly RelativePath[] | undefined): void;
}

/** Steps between two reads of the clock; a step takes a few microseconds. */
const STEPS_PER_CLOCK_READ = 64;

/** The replacement character of Node for the bytes of a name that are not valid UTF-8. */
const REPLACEMENT = "\uFFFD";

/** Opens a walk below `root` without any work. */
export function openWalk(root: string, rules: Rules): Walk {
  // Stacks of work, in this order: files and links of the last listed folder, folders, paths added by `begin`.
  const folders: FolderPath[] = [];
  const requested: RelativePath[] = [];
  const follower = openFollower(root, rules);
  const findings = openFindings(rules, follower);
  const listing = openListing(root, rules, follower, findings, folders);
  const reach = openReach(rules, follower, findings);
  const { isOpen } = reach;

  const addRequested = (path: RelativePath): void => {
    const [parent, name] = split(path);
    if (!reach.reaches(parent)) return;
    const stats = findings.stat(path);
    if (stats?.isSymbolicLink() === true) {
      const asFile = isOpen(parent, (above) => above.file(path, name).wanted);
      const asFolder = isOpen(parent, (above) => above.folder(path, name).wanted);
      if (findings.addLink(path, name, stats, asFile, asFolder)) folders.push(path);
    } else if (stats?.isDirectory() === true) {
      if (!isOpen(parent, (above) => above.folder(path, name).wanted)) return;
      follower.enter(path);
      folders.push(path);
    } else if (stats?.isFile() === true && isOpen(parent, (above) => above.file(path, name).wanted))
      findings.add(path, name, stats);
  };

  const step = (): boolean => {
    if (listing.step()) return true;
    const folder = folders.pop();
    if (folder !== undefined) {
      listing.list(folder);
      return true;
    }
    const path = requested.pop();
    if (path === undefined) return false;
    addRequested(path);
    return true;
  };

  return {
    rootFailure: listing.rootFailure,
    found: findings.found,
    begin: (path) => {
      if (path === "") folders.push(path);
      else requested.push(path);
    },
    advance: (sliceMs) => {
      const endMs = performance.now() + sliceMs;
      for (let steps = 1; step(); steps++) {
        if (steps % STEPS_PER_CLOCK_READ === 0 && performance.now() > endMs) return true;
      }
      return false;
    },
    end: follower.end,
  };
}

/** Collects the results of a walk. */
interface Findings {
  readonly found: Found;
  /** Adds a file by its rules and size. */
  readonly add: (path: RelativePath, name: string, stats: Stats) => void;
  /** Adds the target of a link that the rules admit as a file or as a folder. Returns true for a folder to walk. */
  readonly addLink: (
    path: RelativePath,
    name: string,
    stats: Stats,
    asFile: boolean,
    asFolder: boolean,
  ) => boolean;
  readonly refuse: (path: RelativePath, reason: string) => void;
  readonly unreadable: (facts: Unreadable) => void;
  /** Adds a path with an error, unless nothing is there. */
  readonly failed: (path: FolderPath, error: unknown) => void;
  /** Returns the facts of a path; undefined if nothing is there or it is unreadable, which it adds. */
  readonly stat: (path: RelativePath) => Stats | undefined;
}

function openFindings(rules: Rules, follower: Follower): Findings {
  const entries: ScanEntry[] = [];
  const unreadable: Unreadable[] = [];
  const refused: { path: RelativePath; reason: string }[] = [];
  const skipped: Skip[] = [];

  const failed = (path: FolderPath, error: unknown): void => {
    if (!isAbsence(error)) unreadable.push({ path, code: codeOf(error) ?? "UNKNOWN" });
  };

  const add = (path: RelativePath, name: string, stats: Stats): void => {
    const { size: sizeBytes, mtimeMs, ctimeMs } = stats;
    const link = follower.linkOf(path);
    const ino = link === undefined ? integerColumn(stats.ino) : linkedIno(link.mark, stats.ino);
    const entry = { path, sizeBytes, mtimeMs, ctimeMs, ino, ...(link !== undefined && { link }) };
    const named = kindOfName(name);
    if (named.kind === "skipped") {
      skipped.push({ entry, reason: named.reason });
      return;
    }
    const reason = refusalBySize(named, sizeBytes, rules.source.maxFileBytes);
    if (reason === undefined) entries.push(entry);
    else refused.push({ path, reason });
  };

  return {
    found: { entries, unreadable, refused, skipped },
    add,
    addLink: (path, name, stats, asFile, asFolder) => {
      const target = follower.resolve(path, stats);
      switch (target.kind) {
        case "file":
          if (asFile) add(path, name, target.stats);
          return false;
        case "folder":
          return asFolder;
        case "unreadable":
          unreadable.push({ path, code: target.code });
          return false;
        case "none": {
          const entry = { path, sizeBytes: 0, ...excludedFacts(stats, target.reason) };
          skipped.push({ entry, reason: target.reason, absent: true });
          return false;
        }
      }
    },
    refuse: (path, reason) => void refused.push({ path, reason }),
    unreadable: (facts) => void unreadable.push(facts),
    failed,
    stat: (path) => {
      try {
        return lstatSync(follower.absolute(path), { throwIfNoEntry: false });
      } catch (error) {
        failed(path, error);
        return undefined;
      }
    },
  };
}

/** Lists one folder after another. */
interface Listing {
  /** Lists a folder: its files and links wait for `step`, the folders in it for their turn. */
  readonly list: (folder: FolderPath) => void;
  /** Adds one file or link of the listed folder. Returns false when none is left. */
  readonly step: () => boolean;
  readonly rootFailure: () => string | undefined;
}

function openListing(
  root: string,
  rules: Rules,
  follower: Follower,
  findings: Findings,
  folders: FolderPath[],
): Listing {
  let rootFailure: string | undefined;
  let names: string[] = [];
  let links: string[] = [];
  let inside: FolderPath = "";
  let insideRules: FolderRules;

  const list = (folder: FolderPath): void => {
    inside = folder;
    insideRules = rules.inFolder(folder);
    if (insideRules.unreadable !== undefined) {
      findings.unreadable(insideRules.unreadable);
      if (folder === "") rootFailure = listFailure(root);
      return;
    }
    try {
      let hasReplacement = false;
      for (const entry of readdirSync(follower.listed(folder), { withFileTypes: true })) {
        const { name } = entry;
        if (name.includes(REPLACEMENT)) hasReplacement = true;
        else if (entry.isFile()) names.push(name);
        else if (entry.isDirectory()) enter(childOf(folder, name), name);
        else if (entry.isSymbolicLink()) links.push(name);
      }
      if (hasReplacement) listMisnamed(folder);
    } catch (error) {
      names = [];
      links = [];
      findings.failed(folder, error);
      if (folder === "" && !isAbsence(error)) rootFailure = codeOf(error) ?? "UNKNOWN";
    }
  };

  const enter = (path: RelativePath, name: string): void => {
    if (!insideRules.folder(path, name).wanted) return;
    follower.enter(path);
    folders.push(path);
  };

  /** Lists the names with U+FFFD again: they either contain that character or are not valid UTF-8. */
  const listMisnamed = (folder: FolderPath): void => {
    for (const entry of readdirSync(follower.listed(folder), { withFileTypes: true, encoding: "buffer" })) {
      const name = entry.name.toString("utf8");
      if (!name.includes(REPLACEMENT)) continue;
      const path = childOf(folder, name);
      const isValid = Buffer.from(name, "utf8").equals(entry.name);
      if (entry.isFile() && isValid) names.push(name);
      else if (entry.isSymbolicLink() && isValid) links.push(name);
      else if (entry.isFile() && insideRules.file(path, name).wanted) {
        findings.refuse(path, "its name is not valid UTF-8: rename it");
      } else if (entry.isDirectory() && isValid) enter(path, name);
      else if (entry.isDirectory() && insideRules.folder(path, name).wanted) {
        findings.refuse(path, "the folder's name is not valid UTF-8: rename it to sync what is in it");
      }
    }
  };

  const addListed = (name: string): void => {
    const path = childOf(inside, name);
    if (!insideRules.file(path, name).wanted) return;
    const stats = findings.stat(path);
    if (stats?.isFile() === true) findings.add(path, name, stats);
  };

  const addListedLink = (name: string): void => {
    const path = childOf(inside, name);
    const asFile = insideRules.file(path, name).wanted;
    const asFolder = insideRules.folder(path, name).wanted;
    if (!asFile && !asFolder) return;
    const stats = findings.stat(path);
    if (stats?.isSymbolicLink() === true && findings.addLink(path, name, stats, asFile, asFolder))
      folders.push(path);
  };

  return {
    list,
    step: () => {
      const name = names.pop();
      if (name !== undefined) {
        addListed(name);
        return true;
      }
      const link = links.pop();
      if (link !== undefined) addListedLink(link);
      return link !== undefined;
    },
    rootFailure: () => rootFailure,
  };
}

/** Checks the way to a path that was added by itself. */
interface Reach {
  /** Reports whether a folder exists, is wanted, and is reached through folders only. Cached. */
  readonly reaches: (folder: FolderPath) => boolean;
  /** Checks the rules in a folder. If they are unknown, reports the folder and returns false. */
  readonly isOpen: (folder: FolderPath, check: (above: FolderRules) => boolean) => boolean;
}

function openReach(rules: Rules, follower: Follower, findings: Findings): Reach {
  const reached = new Map<FolderPath, boolean>([["", true]]);
  const reaches = (folder: FolderPath): boolean => {
    const known = reached.get(folder);
    if (known !== undefined) return known;
    const [parent, name] = split(folder);
    const open =
      reaches(parent) && isOpen(parent, (above) => above.folder(folder, name).wanted) && stepsInto(folder);
    reached.set(folder, open);
    return open;
  };
  const stepsInto = (folder: FolderPath): boolean => {
    const stats = findings.stat(folder);
    if (stats?.isSymbolicLink() === true) {
      const target = follower.resolve(folder, stats);
      if (target.kind === "unreadable") findings.unreadable({ path: folder, code: target.code });
      return target.kind === "folder";
    }
    if (stats?.isDirectory() !== true) return false;
    follower.enter(folder);
    return true;
  };

  const isOpen = (folder: FolderPath, check: (above: FolderRules) => boolean): boolean => {
    const above = rules.inFolder(folder);
    if (above.unreadable === undefined) return check(above);
    findings.unreadable(above.unreadable);
    return false;
  };

  return { reaches, isOpen };
}

/** Whether the error means that nothing exists at the path, not that it is inaccessible. */
export function isAbsence(error: unknown): boolean {
  const code = codeOf(error);
  return code === "ENOENT" || code === "ENOTDIR";
}

/** Why a folder cannot be listed. In a folder that cannot be entered, its ignore file is the first to fail. */
function listFailure(path: string): string | undefined {
  try {
    readdirSync(path);
    return undefined;
  } catch (error) {
    return isAbsence(error) ? undefined : (codeOf(error) ?? "UNKNOWN");
  }
}

function childOf(folder: FolderPath, name: string): RelativePath {
  return folder === "" ? name : `${folder}/${name}`;
}

function split(path: RelativePath): [parent: FolderPath, name: string] {
  const slash = path.lastIndexOf("/");
  return slash === -1 ? ["", path] : [path.slice(0, slash), path.slice(slash + 1)];
}
