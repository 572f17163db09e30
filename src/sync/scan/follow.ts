import { lstatSync, realpathSync, type Stats } from "node:fs";
import { codeOf } from "../../lib/failure.ts";
import { linkedIno } from "../disk/linked-ino.ts";
import type { FollowedLink, RelativePath } from "../plan/model.ts";
import type { FolderPath } from "../disk/folder-path.ts";
import type { Rules } from "../rules/rules.ts";
import { pathBelow } from "../../lib/path-below.ts";
import { resolveLink, type Resolved } from "./links.ts";

/** What a link stands for in a scan. */
export type Passed =
  /** `stats` are the target's. */
  | { readonly kind: "file"; readonly stats: Stats }
  | { readonly kind: "folder" }
  /** It is not followed; the reason in words. */
  | { readonly kind: "none"; readonly reason: string }
  | { readonly kind: "unreadable"; readonly code: string };

/** How a walk goes through links, if at all. */
export interface Follower {
  /** The path to ask the disk for a file, folder or link itself: free of links but for its last part. */
  readonly absolute: (path: FolderPath) => string;
  /** The path to list a folder by that was entered: free of links. */
  readonly listed: (folder: FolderPath) => string;
  /** Finds out what a link is; `stats` are the link's own. The folder it lies in was entered. */
  pass(path: RelativePath, stats: Stats): Passed;
  /** Enters a folder that is none itself, but may lie behind a link. */
  enter(path: RelativePath): void;
  /** How a file is reached; undefined when no link is on the way. */
  linkOf(path: RelativePath): FollowedLink | undefined;
  /** The walk is done: links in the scope that it did not find are forgotten. */
  readonly end: (scope: readonly RelativePath[] | undefined) => void;
}

/**
 * So many links to folders may stand on one path. Folders that link to each other give each file a path for every way
 * through them; a ring ends by itself, but ten such folders would have millions of ways.
 */
const LINKED_FOLDERS_MAX = 3;

const NOT_FOLLOWED: Passed = {
  kind: "none",
  reason: "a symbolic link: not followed (`followSymlinks` of the source)",
};

/** What is known of a folder or file behind links. */
interface Way extends FollowedLink {
  /** Folders free of links in which the walk stood when it took each link to a folder. */
  readonly left: readonly string[];
}

/** Opens the links of one walk through a source. */
export function openFollower(root: string, rules: Rules): Follower {
  const atRoot = (path: FolderPath): string => (path === "" ? root : `${root}/${path}`);
  if (!rules.source.followSymlinks) {
    return {
      absolute: atRoot,
      listed: atRoot,
      pass: () => NOT_FOLLOWED,
      enter: () => undefined,
      linkOf: () => undefined,
      end: () => undefined,
    };
  }

  const realRoot = realRootOf(root);
  const ways = new Map<FolderPath, Way>();
  const noted = new Set<RelativePath>();

  const absolute = (path: FolderPath): string => {
    if (path === "") return root;
    const [parent, name] = split(path);
    const above = ways.get(parent);
    return above === undefined ? atRoot(path) : `${above.real}/${name}`;
  };
  /** What is behind no link has the root's way. */
  const wayOf = (folder: FolderPath): Way =>
    ways.get(folder) ?? { real: folder === "" ? realRoot : `${realRoot}/${folder}`, mark: "", left: [] };
  const note = (path: RelativePath, { points, real }: Resolved, isFolder: boolean): void => {
    noted.add(path);
    rules.links.note(path, {
      points: points.flatMap((point) => pathBelow(realRoot, point) ?? []),
      target: real === undefined ? undefined : pathBelow(realRoot, real),
      isFolder,
    });
  };

  const follow = (path: RelativePath, ino: number): Passed => {
    const found = resolveLink(absolute(path));
    const { real } = found;
    if (real === undefined || pathBelow(realRoot, real) === undefined) {
      note(path, found, false);
      return none(real === undefined ? "leads nowhere" : "leads outside of the source");
    }
    // Noted before its facts are taken: a change in between is a hint then.
    note(path, found, false);
    const stats = lstatSync(real, { throwIfNoEntry: false });
    const from = wayOf(split(path)[0]);
    const mark = `${from.mark}/${ino}`;
    if (stats?.isFile() === true) {
      ways.set(path, { real, mark, left: from.left });
      return { kind: "file", stats };
    }
    if (stats?.isDirectory() !== true) return none("leads to no file or folder");
    const left = [...from.left, from.real];
    if (left.some((folder) => pathBelow(real, folder) !== undefined)) {
      return none("leads back to a folder that it lies in");
    }
    if (left.length > LINKED_FOLDERS_MAX) return none(`stands behind ${LINKED_FOLDERS_MAX} other ones`);
    note(path, found, true);
    ways.set(path, { real, mark, left });
    return { kind: "folder" };
  };

  return {
    absolute,
    listed: (folder) => ways.get(folder)?.real ?? absolute(folder),
    pass: (path, { ino }) => {
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
      const above = ways.get(parent);
      if (above === undefined) return;
      const real = `${above.real}/${name}`;
      note(path, { points: [], real }, true);
      ways.set(path, { ...above, real });
    },
    linkOf: (path) => {
      const own = ways.get(path);
      if (own !== undefined) return { real: own.real, mark: own.mark };
      const [parent, name] = split(path);
      const above = ways.get(parent);
      return above === undefined ? undefined : { real: `${above.real}/${name}`, mark: above.mark };
    },
    end: (scope) => rules.links.keep(scope, noted),
  };
}

/** The facts under which a left-out link is remembered: those of another reason are others, so that it is told anew. */
export function factsOfLeftOut(stats: Stats, reason: string): Pick<Stats, "mtimeMs" | "ctimeMs" | "ino"> {
  const { mtimeMs, ctimeMs, ino } = stats;
  return { mtimeMs, ctimeMs, ino: linkedIno(reason, ino) };
}

function none(reason: string): Passed {
  return { kind: "none", reason: `a symbolic link that ${reason}` };
}

function realRootOf(root: string): string {
  try {
    return realpathSync(root);
  } catch {
    return root; // gone meanwhile: the scan notices
  }
}

function split(path: FolderPath): [parent: FolderPath, name: string] {
  const slash = path.lastIndexOf("/");
  return slash === -1 ? ["", path] : [path.slice(0, slash), path.slice(slash + 1)];
}
