import type { RelativePath } from "../plan/model.ts";
import type { FolderPath } from "../disk/folder-path.ts";

/** Where a path leads that goes through links. All are places below the source's root as they really lie there. */
export interface LinkTrace {
  /** Links passed on the way, and its end or the place where nothing was found: what happens to any of them matters. */
  readonly points: readonly FolderPath[];
  /** The folder or file it leads to; undefined when it leads to none. */
  readonly target: FolderPath | undefined;
  readonly isFolder: boolean;
}

/** What must be watched for the links' sake. A part of it may be watched already. */
export interface LinkWatches {
  readonly folders: readonly FolderPath[];
  /** Paths whose events count though the rules leave them out. */
  readonly points: readonly FolderPath[];
}

/**
 * The links of a source that scans followed, and the folders reached through them: what turns a change of a target into
 * a look at the paths that lead to it.
 */
export interface FollowedLinks {
  /** Notes a path that a scan is about to look at through links; before it does, so that no change falls in between. */
  note(path: RelativePath, trace: LinkTrace): void;
  /** A scan of this scope (undefined: the whole source) is done and noted just these paths: others in it are forgotten. */
  keep(scope: readonly RelativePath[] | undefined, noted: ReadonlySet<RelativePath>): void;
  /** Paths that lead through links to what lies at `path`, or below it. */
  touchedBy(path: RelativePath): readonly RelativePath[];
  watches(): LinkWatches;
  /** Calls the listener after a scan that found other links than before; one listener at a time. */
  listen(listener: (() => void) | undefined): void;
}

/** Opens an empty record. */
export function openFollowedLinks(): FollowedLinks {
  const traces = new Map<RelativePath, LinkTrace>();
  let index: Index | undefined;
  let changed = false;
  let told: () => void = () => undefined;

  return {
    note: (path, trace) => {
      const before = traces.get(path);
      if (before !== undefined && sameTrace(before, trace)) return;
      traces.set(path, trace);
      index = undefined;
      changed = true;
    },
    keep: (scope, noted) => {
      for (const path of traces.keys()) {
        if (noted.has(path) || (scope !== undefined && !isBelowAny(path, scope))) continue;
        traces.delete(path);
        index = undefined;
        changed = true;
      }
      if (!changed) return;
      changed = false;
      told();
    },
    touchedBy: (path) => {
      if (traces.size === 0) return [];
      index ??= indexOf(traces);
      const touched = new Set(index.points.get(path));
      for (const folder of upward(path)) {
        for (const link of index.targets.get(folder) ?? []) touched.add(link + path.slice(folder.length));
      }
      touched.delete(path);
      return [...touched];
    },
    watches: () => {
      const folders = new Set<FolderPath>();
      const points = new Set<FolderPath>();
      for (const trace of traces.values()) {
        if (trace.isFolder && trace.target !== undefined) folders.add(trace.target);
        for (const point of trace.points) {
          points.add(point);
          for (const folder of upward(parentOf(point))) folders.add(folder);
        }
      }
      return { folders: [...folders], points: [...points] };
    },
    listen: (listener) => {
      told = listener ?? (() => undefined);
    },
  };
}

interface Index {
  /** By each point and every folder above it: the paths that lead there. */
  readonly points: ReadonlyMap<FolderPath, ReadonlySet<RelativePath>>;
  readonly targets: ReadonlyMap<FolderPath, ReadonlySet<RelativePath>>;
}

function indexOf(traces: ReadonlyMap<RelativePath, LinkTrace>): Index {
  const points = new Map<FolderPath, Set<RelativePath>>();
  const targets = new Map<FolderPath, Set<RelativePath>>();
  const add = (map: typeof points, key: FolderPath, path: RelativePath): void => {
    const known = map.get(key);
    if (known === undefined) map.set(key, new Set([path]));
    else known.add(path);
  };
  for (const [path, trace] of traces) {
    for (const point of trace.points) for (const folder of upward(point)) add(points, folder, path);
    if (trace.target !== undefined) add(targets, trace.target, path);
  }
  return { points, targets };
}

/** The path and every folder above it, without the root. */
function* upward(path: FolderPath): Generator<FolderPath> {
  for (let end = path.length; end > 0; end = path.lastIndexOf("/", end - 1)) yield path.slice(0, end);
}

function parentOf(path: FolderPath): FolderPath {
  const slash = path.lastIndexOf("/");
  return slash === -1 ? "" : path.slice(0, slash);
}

function isBelowAny(path: RelativePath, folders: readonly RelativePath[]): boolean {
  return folders.some((folder) => path === folder || path.startsWith(`${folder}/`));
}

function sameTrace(a: LinkTrace, b: LinkTrace): boolean {
  return (
    a.target === b.target &&
    a.isFolder === b.isFolder &&
    a.points.length === b.points.length &&
    a.points.every((point, at) => point === b.points[at])
  );
}
