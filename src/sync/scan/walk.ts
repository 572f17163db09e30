import type { RelativePath, FolderPath } from "../plan/model.ts";
import type { FolderRules, Rules } from "./rules/rules.ts";
import { openFollower, type Follower } from "./follow.ts";
import { openFindings, type Findings } from "./findings.ts";
import { openListing } from "./listing.ts";

/** Steps between two reads of the clock; a step takes a few microseconds. */
const STEPS_PER_CLOCK_READ = 64;

/** Opens a walk below `root` without any work. It can be interrupted after every file. */
export function openWalk(root: string, rules: Rules) {
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
    /** Why the root itself could not be listed; undefined if it could. */
    rootFailure: listing.rootFailure,
    /** Grows during the walk. */
    found: findings.found,
    /** Adds a file, or a folder with all below it. Checks the folders above it first. "" is the root. */
    begin: (path: FolderPath): void => {
      if (path === "") folders.push(path);
      else requested.push(path);
    },
    /** Works for about `sliceMs`. Returns false when nothing is left. */
    advance: (sliceMs: number): boolean => {
      const endMs = performance.now() + sliceMs;
      for (let steps = 1; step(); steps++) {
        if (steps % STEPS_PER_CLOCK_READ === 0 && performance.now() > endMs) return true;
      }
      return false;
    },
    /** Ends a finished walk: removes links in the scope (undefined: the whole source) that it did not find. */
    end: follower.end,
  };
}

/** Checks the way to a path that was added by itself. */
function openReach(rules: Rules, follower: Follower, findings: Findings) {
  const reached = new Map<FolderPath, boolean>([["", true]]);
  /** Reports whether a folder exists, is wanted, and is reached through folders only. Cached. */
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

  /** Checks the rules in a folder. If they are unknown, reports the folder and returns false. */
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
