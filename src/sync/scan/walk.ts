import type { RelativePath, FolderPath } from "../plan/model.ts";
import type { FolderRules, Rules } from "../rules/rules.ts";
import { openFollower, type Follower } from "./follow.ts";
import { type Found, openFindings, type Findings } from "./findings.ts";
import { openListing } from "./listing.ts";

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
      if (follower.enter(path)) folders.push(path);
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
    return follower.enter(folder);
  };

  const isOpen = (folder: FolderPath, check: (above: FolderRules) => boolean): boolean => {
    const above = rules.inFolder(folder);
    if (above.unreadable === undefined) return check(above);
    findings.unreadable(above.unreadable);
    return false;
  };

  return { reaches, isOpen };
}

function split(path: RelativePath): [parent: FolderPath, name: string] {
  const slash = path.lastIndexOf("/");
  return slash === -1 ? ["", path] : [path.slice(0, slash), path.slice(slash + 1)];
}
