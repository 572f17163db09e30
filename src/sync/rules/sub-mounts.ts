import { readFileSync, realpathSync, statSync } from "node:fs";
import { parseMounts } from "../../lib/mount-table.ts";
import type { RelativePath, RootIdentity, Unreadable } from "../plan/model.ts";
import { rootIdentityOf } from "../disk/root-identity.ts";
import type { FolderPath } from "../disk/folder-path.ts";

/** The file system below a source's root was unmounted: its files are not gone. */
export const UNMOUNTED = "UNMOUNTED";
/** Something is mounted over files of a source: they are hidden, not gone. */
export const MOUNTED_OVER = "MOUNTED_OVER";

/** A mount that is to be noted in the ledger; without an identity it is to be forgotten. */
export interface NotedMount {
  readonly path: FolderPath;
  readonly root: RootIdentity | undefined;
}

/**
 * What is mounted below a source's root. A disk that is unmounted leaves an empty folder, and one that is mounted over a
 * folder hides what is in it: neither deletes a file. So the ledger notes which mounts a source had. Below one that
 * disappeared, or that hides files which the ledger knows, nothing is decided.
 */
export interface SubMounts {
  /**
   * Looks at what is mounted now; every scan begins with it. `judges`: the caller decides about the mounts that are
   * `unjudged`, so these are open; for any other scan they are closed.
   */
  look(judges: boolean): void;
  /** Paths that the last look closed, each a folder or file with all below it. */
  closed(): readonly Unreadable[];
  /** Why nothing may be decided in a folder. */
  closedAt(folder: FolderPath): Unreadable | undefined;
  /** Paths where another file system is mounted now, or none, than at the last look. */
  changed(): readonly FolderPath[];
  /** Mounts that are new and lie over files of the ledger, which may be theirs or hidden by them. */
  unjudged(): readonly FolderPath[];
  /** Decides about an unjudged mount: its files are the ledger's, or it hides them. */
  judge(path: FolderPath, isTheirs: boolean): void;
  /**
   * Paths where something was mounted or unmounted since the last call, as far as looks met it. A mount that is gone before
   * anything else notices it has hidden files from the look that met it.
   */
  takeMoved(): readonly FolderPath[];
  /** What is to be noted since the last call. */
  takeNoted(): readonly NotedMount[];
}

/** What mounts are judged by. */
export interface SubMountOptions {
  /** The mounts that the ledger knows. */
  readonly known: ReadonlyMap<FolderPath, RootIdentity>;
  /** Whether the ledger has files at or below a path. */
  readonly hasFiles: (path: RelativePath) => boolean;
}

interface Mounted {
  readonly id: number;
  readonly root: RootIdentity | undefined;
}

/** Opens the mounts below `root`. Nothing is looked at before `look`. */
export function openSubMounts(root: string, options: SubMountOptions): SubMounts {
  const known = new Map(options.known);
  const noted = new Map<FolderPath, RootIdentity | undefined>();
  /** Undefined: nothing was looked at yet. */
  let mounted: ReadonlyMap<FolderPath, Mounted> | undefined;
  let moved = new Set<FolderPath>();
  let closed = new Map<FolderPath, Unreadable>();
  let unjudged = new Set<FolderPath>();

  const note = (path: FolderPath, identity: RootIdentity | undefined): void => {
    if (identity === undefined) known.delete(path);
    else known.set(path, identity);
    noted.set(path, identity);
  };
  const close = (path: FolderPath, code: string): void => void closed.set(path, { path, code });
  /** Paths where something else is mounted, or nothing, than at the last look; before the first, than the ledger knows. */
  const differing = (now: ReadonlyMap<FolderPath, Mounted>): readonly FolderPath[] => {
    const before = mounted;
    const isSame = (path: FolderPath): boolean =>
      before === undefined ? known.has(path) === now.has(path) : before.get(path)?.id === now.get(path)?.id;
    const paths = [...new Set([...(before ?? known).keys(), ...now.keys()])].filter((path) => !isSame(path));
    for (const path of paths) moved.add(path);
    return paths;
  };

  return {
    look: (judges) => {
      const now = mountsBelow(root);
      differing(now);
      mounted = now;
      closed = new Map();
      unjudged = new Set();
      for (const path of known.keys()) {
        if (mounted.has(path)) continue;
        if (options.hasFiles(path)) close(path, UNMOUNTED);
        else note(path, undefined);
      }
      for (const [path, { root: identity }] of mounted) {
        if (identity === undefined) continue; // it cannot be looked at, which the scan reports
        const before = known.get(path);
        if (before?.dev === identity.dev && before.ino === identity.ino) continue;
        // A disk that is plugged in again is known by its files. Two that were formatted in one second seem to be one.
        if (!options.hasFiles(path)) note(path, identity);
        else if (judges) unjudged.add(path);
        else close(path, MOUNTED_OVER);
      }
    },
    closed: () => [...closed.values()],
    closedAt: (folder) => closed.get(folder),
    changed: () => differing(mountsBelow(root)),
    unjudged: () => [...unjudged],
    judge: (path, isTheirs) => {
      unjudged.delete(path);
      if (isTheirs) note(path, mounted?.get(path)?.root);
      else close(path, MOUNTED_OVER);
    },
    takeMoved: () => {
      const taken = [...moved];
      moved = new Set();
      return taken;
    },
    takeNoted: () => {
      const taken = [...noted].map(([path, identity]) => ({ path, root: identity }));
      noted.clear();
      return taken;
    },
  };
}

/** Of mounts at one path the last lies over the others. Nothing where the system does not say what is mounted. */
function mountsBelow(root: string): ReadonlyMap<FolderPath, Mounted> {
  const mounts = new Map<FolderPath, Mounted>();
  try {
    const real = realpathSync(root);
    const start = real === "/" ? "/" : `${real}/`;
    for (const { id, path } of parseMounts(readFileSync("/proc/self/mountinfo", "utf8"))) {
      if (path.startsWith(start) && path !== start)
        mounts.set(path.slice(start.length), { id, root: identify(path) });
    }
  } catch {
    // A root that is gone has no mounts, and outside of Linux there is no such file.
  }
  return mounts;
}

function identify(path: string): RootIdentity | undefined {
  try {
    return rootIdentityOf(statSync(path));
  } catch {
    return undefined;
  }
}
