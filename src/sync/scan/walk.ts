import { lstatSync, readdirSync, type Stats } from "node:fs";
import { codeOf } from "../../lib/failure.ts";
import { integerColumn } from "../../lib/integer-column.ts";
import { refusalBySize } from "../document/bounds.ts";
import { kindOfName } from "../document/kinds.ts";
import type { RelativePath, ScanEntry, Skip, Unreadable } from "../plan/model.ts";
import type { FolderPath } from "../disk/folder-path.ts";
import type { FolderRules, Rules } from "../rules/rules.ts";
import { linkedIno } from "../disk/linked-ino.ts";
import { factsOfLeftOut, openFollower } from "./follow.ts";

/** What a walk saw. */
export interface Found {
  readonly entries: readonly ScanEntry[];
  readonly unreadable: readonly Unreadable[];
  readonly refused: readonly { readonly path: RelativePath; readonly reason: string }[];
  readonly skipped: readonly Skip[];
}

/** A walk through a source that can be interrupted after every file. */
export interface Walk {
  /** Grows while the walk goes on. */
  readonly found: Found;
  /** Why the root itself could not be listed; undefined while it could. */
  rootFailure(): string | undefined;
  /** Adds a file, or a folder with all below it; the folders above it are asked for first. "" is the root. */
  begin(path: FolderPath): void;
  /** Works for about `sliceMs`. False: nothing is left. */
  advance(sliceMs: number): boolean;
  /** Nothing is left: links in the scope (undefined: the whole source) that were not found are forgotten. */
  end(scope: readonly RelativePath[] | undefined): void;
}

/** The clock is read after this many steps; one takes a few microseconds. */
const STEPS_PER_LOOK = 64;

/** What Node puts for the bytes of a name that are no UTF-8. */
const REPLACEMENT = "\uFFFD";

/** Opens a walk below `root`, with nothing to do yet. */
export function openWalk(root: string, rules: Rules): Walk {
  const entries: ScanEntry[] = [];
  const unreadable: Unreadable[] = [];
  const refused: { path: RelativePath; reason: string }[] = [];
  const skipped: Skip[] = [];

  // Work, done from the end: the files and links of the folder listed last, then folders, then paths to begin with.
  const folders: FolderPath[] = [];
  const begun: RelativePath[] = [];
  let rootFailure: string | undefined;
  let names: string[] = [];
  let links: string[] = [];
  let inside: FolderPath = "";
  let insideRules: FolderRules;

  const follower = openFollower(root, rules);
  const { absolute, listed } = follower;

  const cannotLook = (path: FolderPath, error: unknown): void => {
    if (!isAbsence(error)) unreadable.push({ path, code: codeOf(error) ?? "UNKNOWN" });
  };

  const look = (path: RelativePath): Stats | undefined => {
    try {
      return lstatSync(absolute(path), { throwIfNoEntry: false });
    } catch (error) {
      cannotLook(path, error);
      return undefined;
    }
  };

  const list = (folder: FolderPath): void => {
    inside = folder;
    insideRules = rules.inFolder(folder);
    if (insideRules.unreadable !== undefined) {
      unreadable.push(insideRules.unreadable);
      if (folder === "") rootFailure = listFailure(root);
      return;
    }
    try {
      let strange = false;
      for (const entry of readdirSync(listed(folder), { withFileTypes: true })) {
        const { name } = entry;
        if (name.includes(REPLACEMENT)) strange = true;
        else if (entry.isFile()) names.push(name);
        else if (entry.isDirectory()) enter(childOf(folder, name), name);
        else if (entry.isSymbolicLink()) links.push(name);
      }
      if (strange) listStrange(folder);
    } catch (error) {
      names = [];
      links = [];
      cannotLook(folder, error);
      if (folder === "" && !isAbsence(error)) rootFailure = codeOf(error) ?? "UNKNOWN";
    }
  };

  const enter = (path: RelativePath, name: string): void => {
    if (!insideRules.folder(path, name).wanted) return;
    follower.enter(path);
    folders.push(path);
  };

  /** Looks again at names that hold U+FFFD: either they are spelled so, or their bytes are no UTF-8. */
  const listStrange = (folder: FolderPath): void => {
    for (const entry of readdirSync(listed(folder), { withFileTypes: true, encoding: "buffer" })) {
      const name = entry.name.toString("utf8");
      if (!name.includes(REPLACEMENT)) continue;
      const path = childOf(folder, name);
      const spelledSo = Buffer.from(name, "utf8").equals(entry.name);
      if (entry.isFile() && spelledSo) names.push(name);
      else if (entry.isSymbolicLink() && spelledSo) links.push(name);
      else if (entry.isFile() && insideRules.file(path, name).wanted) {
        refused.push({ path, reason: "its name is not valid UTF-8: rename it" });
      } else if (entry.isDirectory() && spelledSo) enter(path, name);
      else if (entry.isDirectory() && insideRules.folder(path, name).wanted) {
        refused.push({
          path,
          reason: "the folder's name is not valid UTF-8: rename it to sync what is in it",
        });
      }
    }
  };

  const takeListed = (name: string): void => {
    const path = childOf(inside, name);
    if (!insideRules.file(path, name).wanted) return;
    const stats = look(path);
    if (stats?.isFile() === true) take(path, name, stats);
  };

  const takeListedLink = (name: string): void => {
    const path = childOf(inside, name);
    const asFile = insideRules.file(path, name).wanted;
    const asFolder = insideRules.folder(path, name).wanted;
    if (!asFile && !asFolder) return;
    const stats = look(path);
    if (stats?.isSymbolicLink() === true) takeLink(path, name, stats, asFile, asFolder);
  };

  const takeLink = (
    path: RelativePath,
    name: string,
    stats: Stats,
    asFile: boolean,
    asFolder: boolean,
  ): void => {
    const passed = follower.pass(path, stats);
    switch (passed.kind) {
      case "file":
        if (asFile) take(path, name, passed.stats);
        break;
      case "folder":
        if (asFolder) folders.push(path);
        break;
      case "unreadable":
        unreadable.push({ path, code: passed.code });
        break;
      case "none": {
        const entry = { path, sizeBytes: 0, ...factsOfLeftOut(stats, passed.reason) };
        skipped.push({ entry, reason: passed.reason, absent: true });
        break;
      }
    }
  };

  const take = (path: RelativePath, name: string, stats: Stats): void => {
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

  /** Whether a folder is there, wanted, and reached through folders alone. Asked for once each. */
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
    const stats = look(folder);
    if (stats?.isSymbolicLink() === true) {
      const passed = follower.pass(folder, stats);
      if (passed.kind === "unreadable") unreadable.push({ path: folder, code: passed.code });
      return passed.kind === "folder";
    }
    if (stats?.isDirectory() !== true) return false;
    follower.enter(folder);
    return true;
  };

  /** Asks the rules in a folder; where they cannot be known, says no and reports it. */
  const isOpen = (folder: FolderPath, ask: (above: FolderRules) => boolean): boolean => {
    const above = rules.inFolder(folder);
    if (above.unreadable === undefined) return ask(above);
    unreadable.push(above.unreadable);
    return false;
  };

  const takeBegun = (path: RelativePath): void => {
    const [parent, name] = split(path);
    if (!reaches(parent)) return;
    const stats = look(path);
    if (stats?.isSymbolicLink() === true) {
      const asFile = isOpen(parent, (above) => above.file(path, name).wanted);
      const asFolder = isOpen(parent, (above) => above.folder(path, name).wanted);
      if (asFile || asFolder) takeLink(path, name, stats, asFile, asFolder);
    } else if (stats?.isDirectory() === true) {
      if (!isOpen(parent, (above) => above.folder(path, name).wanted)) return;
      follower.enter(path);
      folders.push(path);
    } else if (stats?.isFile() === true && isOpen(parent, (above) => above.file(path, name).wanted))
      take(path, name, stats);
  };

  const step = (): boolean => {
    const name = names.pop();
    if (name !== undefined) {
      takeListed(name);
      return true;
    }
    const link = links.pop();
    if (link !== undefined) {
      takeListedLink(link);
      return true;
    }
    const folder = folders.pop();
    if (folder !== undefined) {
      list(folder);
      return true;
    }
    const path = begun.pop();
    if (path === undefined) return false;
    takeBegun(path);
    return true;
  };

  return {
    rootFailure: () => rootFailure,
    found: { entries, unreadable, refused, skipped },
    begin: (path) => {
      if (path === "") folders.push(path);
      else begun.push(path);
    },
    advance: (sliceMs) => {
      const endMs = performance.now() + sliceMs;
      for (let steps = 1; step(); steps++) {
        if (steps % STEPS_PER_LOOK === 0 && performance.now() > endMs) return true;
      }
      return false;
    },
    end: follower.end,
  };
}

/** Whether the error says that there is nothing at the path (any more), rather than that we may not look. */
export function isAbsence(error: unknown): boolean {
  const code = codeOf(error);
  return code === "ENOENT" || code === "ENOTDIR";
}

/** Why a folder cannot be listed. Where it cannot be entered its ignore file is what fails first. */
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
