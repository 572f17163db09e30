import { lstatSync, realpathSync, type Stats } from "node:fs";
import { codeOf } from "../../lib/failure.ts";
import { linkedIno } from "./disk/linked-ino.ts";
import type { FollowedLink, RelativePath, FolderPath } from "../plan/model.ts";
import type { Rules } from "./rules/rules.ts";
import { pathBelow } from "../../lib/path-below.ts";
import { resolveLink, type Resolved } from "./links.ts";

/** The result of following a link in a scan. */
export type LinkTarget =
  /** `stats` are the target's. */
  | { readonly kind: "file"; readonly stats: Stats }
  | { readonly kind: "folder" }
  /** The link is not followed; the reason is for a person. */
  | { readonly kind: "none"; readonly reason: string }
  | { readonly kind: "unreadable"; readonly code: string };

/** Follows links during a walk, if the source follows any. */
export interface Follower {
  /** The path by which to stat a file, folder or link: free of links except for its last part. */
  readonly absolute: (path: FolderPath) => string;
  /** The path by which to list an entered folder: free of links. */
  readonly listed: (folder: FolderPath) => string;
  /** Resolves a link; `stats` are the link's own. Its folder must have been entered. */
  resolve(path: RelativePath, stats: Stats): LinkTarget;
  /** Enters a folder that is not a link, but may be behind one. Returns false for the folder of another source. */
  enter(path: RelativePath): boolean;
  /** The link through which a file is reached; undefined if none is on its path. */
  linkOf(path: RelativePath): FollowedLink | undefined;
  /** Ends the walk. Removes links in the scope that it did not find. */
  readonly end: (scope: readonly RelativePath[] | undefined) => void;
}

/**
 * Maximum number of links to folders on one path. Folders that link to each other give each file a path for every route
 * through them. A ring ends by itself, but ten such folders would yield millions of routes.
 */
const LINKED_FOLDERS_MAX = 3;

const NOT_FOLLOWED: LinkTarget = {
  kind: "none",
  reason: "a symbolic link: not followed (`followSymlinks` of the source)",
};

/** A folder or file behind links. */
interface LinkedPath extends FollowedLink {
  /** Link-free folders in which the walk was when it took each link to a folder. */
  readonly left: readonly string[];
}

/** Opens the follower for one walk through a source. */
export function openFollower(root: string, rules: Rules): Follower {
  const atRoot = (path: FolderPath): string => (path === "" ? root : `${root}/${path}`);
  if (!rules.source.followSymlinks) {
    return {
      absolute: atRoot,
      listed: atRoot,
      resolve: () => NOT_FOLLOWED,
      enter: () => true,
      linkOf: () => undefined,
      end: () => undefined,
    };
  }

  const realRoot = realRootOf(root);
  const linkedPaths = new Map<FolderPath, LinkedPath>();
  const noted = new Set<RelativePath>();

  const absolute = (path: FolderPath): string => {
    if (path === "") return root;
    const [parent, name] = split(path);
    const above = linkedPaths.get(parent);
    return above === undefined ? atRoot(path) : `${above.real}/${name}`;
  };
  /** Returns the linked path of a folder; a folder behind no link has one without links. */
  const linkedPathOf = (folder: FolderPath): LinkedPath =>
    linkedPaths.get(folder) ?? {
      real: folder === "" ? realRoot : `${realRoot}/${folder}`,
      mark: "",
      left: [],
    };
  const note = (path: RelativePath, { points, real }: Resolved, isFolder: boolean): void => {
    noted.add(path);
    rules.links.note(path, {
      points: points.flatMap((point) => pathBelow(realRoot, point) ?? []),
      target: real === undefined ? undefined : pathBelow(realRoot, real),
      isFolder,
    });
  };

  const follow = (path: RelativePath, ino: number): LinkTarget => {
    const found = resolveLink(absolute(path));
    const { real } = found;
    const target = real === undefined ? undefined : pathBelow(realRoot, real);
    if (real === undefined || target === undefined || rules.isInner(target)) {
      note(path, found, false);
      return none(real === undefined ? "leads nowhere" : "leads outside of the source");
    }
    // Recorded before the stat, so that a change in between causes a hint.
    note(path, found, false);
    const stats = lstatSync(real, { throwIfNoEntry: false });
    const from = linkedPathOf(split(path)[0]);
    const mark = `${from.mark}/${ino}`;
    if (stats?.isFile() === true) {
      linkedPaths.set(path, { real, mark, left: from.left });
      return { kind: "file", stats };
    }
    if (stats?.isDirectory() !== true) return none("leads to no file or folder");
    const left = [...from.left, from.real];
    if (left.some((folder) => pathBelow(real, folder) !== undefined)) {
      return none("leads back to a folder that contains it");
    }
    if (left.length > LINKED_FOLDERS_MAX) return none(`is behind ${LINKED_FOLDERS_MAX} others`);
    note(path, found, true);
    linkedPaths.set(path, { real, mark, left });
    return { kind: "folder" };
  };

  return {
    absolute,
    listed: (folder) => linkedPaths.get(folder)?.real ?? absolute(folder),
    resolve: (path, { ino }) => {
      try {
        return follow(path, ino);
      } catch (error) {
        const code = codeOf(error) ?? "UNKNOWN";
        if (code === "ENOENT" || code === "ENOTDIR") return none("leads nowhere"); // as of this moment
        return { kind: "unreadable", code };
      }
    },
    enter: (path) => {
      const [parent, name] = split(path);
      const above = linkedPaths.get(parent);
      if (above === undefined) return true;
      const real = `${above.real}/${name}`;
      if (rules.isInner(pathBelow(realRoot, real) ?? "")) return false;
      note(path, { points: [], real }, true);
      linkedPaths.set(path, { ...above, real });
      return true;
    },
    linkOf: (path) => {
      const own = linkedPaths.get(path);
      if (own !== undefined) return { real: own.real, mark: own.mark };
      const [parent, name] = split(path);
      const above = linkedPaths.get(parent);
      return above === undefined ? undefined : { real: `${above.real}/${name}`, mark: above.mark };
    },
    end: (scope) => rules.links.retain(scope, noted),
  };
}

/** The facts stored of an excluded link. They depend on the reason, so that a new reason is reported. */
export function excludedFacts(stats: Stats, reason: string): Pick<Stats, "mtimeMs" | "ctimeMs" | "ino"> {
  const { mtimeMs, ctimeMs, ino } = stats;
  return { mtimeMs, ctimeMs, ino: linkedIno(reason, ino) };
}

function none(reason: string): LinkTarget {
  return { kind: "none", reason: `a symbolic link that ${reason}` };
}

function realRootOf(root: string): string {
  try {
    return realpathSync(root);
  } catch {
    return root; // it disappeared: the scan notices
  }
}

function split(path: FolderPath): [parent: FolderPath, name: string] {
  const slash = path.lastIndexOf("/");
  return slash === -1 ? ["", path] : [path.slice(0, slash), path.slice(slash + 1)];
}
