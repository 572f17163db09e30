import { readFileSync, realpathSync, statSync } from "node:fs";
import { parseMounts } from "../../../lib/mount-table.ts";
import type { RelativePath, RootIdentity, Unreadable, FolderPath } from "../../plan/model.ts";
import { rootIdentityOf } from "../disk/root-identity.ts";

/** The file system below a source's root was unmounted: its files are not gone. */
export const UNMOUNTED = "UNMOUNTED";
/** Something is mounted over files of a source: they are hidden, not gone. */
export const MOUNTED_OVER = "MOUNTED_OVER";

/** A mount to record in the ledger; without an identity, to remove from it. */
export interface NotedMount {
  readonly path: FolderPath;
  readonly root: RootIdentity | undefined;
}

/**
 * The mounts below a source's root. An unmounted disk leaves an empty folder, and a mount over a folder hides its files:
 * neither deletes a file. So the ledger records the mounts of a source, and nothing is decided below a mount that
 * disappeared or that hides files of the ledger.
 */
export type SubMounts = ReturnType<typeof openSubMounts>;

/** Options for judging mounts. */
export interface SubMountOptions {
  /** The mounts in the ledger. */
  readonly known: ReadonlyMap<FolderPath, RootIdentity>;
  /** Whether the ledger has files at or below a path. */
  readonly hasFiles: (path: RelativePath) => boolean;
}

interface Mounted {
  readonly id: number;
  readonly root: RootIdentity | undefined;
}

/** Opens the mounts below `root`. Reads nothing before `refresh`. */
export function openSubMounts(root: string, options: SubMountOptions) {
  const known = new Map(options.known);
  const noted = new Map<FolderPath, RootIdentity | undefined>();
  /** Undefined before the first refresh. */
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
  /** Paths whose mount differs from the last refresh; before the first one, from the ledger. */
  const differing = (now: ReadonlyMap<FolderPath, Mounted>): readonly FolderPath[] => {
    const before = mounted;
    const isSame = (path: FolderPath): boolean =>
      before === undefined ? known.has(path) === now.has(path) : before.get(path)?.id === now.get(path)?.id;
    const paths = [...new Set([...(before ?? known).keys(), ...now.keys()])].filter((path) => !isSame(path));
    for (const path of paths) moved.add(path);
    return paths;
  };

  return {
    /**
     * Reads the current mounts; every scan starts with it. `judges`: the caller decides about the `unjudged` mounts, so they
     * are open. In any other scan they are closed.
     */
    refresh: (judges: boolean): void => {
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
        if (identity === undefined) continue; // the scan reports that it cannot be accessed
        const before = known.get(path);
        if (before?.dev === identity.dev && before.ino === identity.ino) continue;
        // A disk that is plugged in again is recognised by its files. Two disks formatted in the same second look identical.
        if (!options.hasFiles(path)) note(path, identity);
        else if (judges) unjudged.add(path);
        else close(path, MOUNTED_OVER);
      }
    },
    /** Paths that the last refresh closed, each a folder or file with all below it. */
    closed: (): readonly Unreadable[] => [...closed.values()],
    /** Why nothing in a folder may be decided. */
    closedAt: (folder: FolderPath): Unreadable | undefined => closed.get(folder),
    /** Paths where the mounted file system, or its absence, differs from the last refresh. */
    changed: (): readonly FolderPath[] => differing(mountsBelow(root)),
    /** New mounts over files of the ledger. The files may be on the mount, or hidden by it. */
    unjudged: (): readonly FolderPath[] => [...unjudged],
    /** Decides about an unjudged mount: it contains the ledger's files, or hides them. */
    judge: (path: FolderPath, isTheirs: boolean): void => {
      unjudged.delete(path);
      if (isTheirs) note(path, mounted?.get(path)?.root);
      else close(path, MOUNTED_OVER);
    },
    /**
     * Paths where something was mounted or unmounted since the last call, as far as a refresh saw it. A mount that disappears
     * unnoticed has hidden files since the refresh that saw it.
     */
    takeMoved: (): readonly FolderPath[] => {
      const taken = [...moved];
      moved = new Set();
      return taken;
    },
    /** Mounts to record since the last call. */
    takeNoted: (): readonly NotedMount[] => {
      const taken = [...noted].map(([path, identity]) => ({ path, root: identity }));
      noted.clear();
      return taken;
    },
  };
}

/** The last of several mounts at one path covers the others. Empty if the system does not list its mounts. */
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
    // A missing root has no mounts. Systems other than Linux have no such file.
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
