import type { RelativePath, FolderPath } from "../../plan/model.ts";

/** Resolution of a path that goes through links. All paths are below the source's root and free of links. */
export interface LinkTrace {
  /** The links on the path, then its end or the first missing point. A change of any of them matters. */
  readonly points: readonly FolderPath[];
  /** The folder or file at the end; undefined if there is none. */
  readonly target: FolderPath | undefined;
  readonly isFolder: boolean;
}

/** Paths to watch for links. Some of it may be watched already. */
export interface LinkWatches {
  readonly folders: readonly FolderPath[];
  /** Paths whose events count although the rules exclude them. */
  readonly points: readonly FolderPath[];
}

/**
 * The links that scans followed in a source, and the folders reached through them. Maps a change of a target to the paths
 * that lead to it.
 */
export type FollowedLinks = ReturnType<typeof openFollowedLinks>;

/** Opens an empty record. */
export function openFollowedLinks() {
  const traces = new Map<RelativePath, LinkTrace>();
  let index: Index | undefined;
  let changed = false;
  let onChange: () => void = () => undefined;

  return {
    /** Records a path before a scan visits it through links, so that no change goes unnoticed in between. */
    note: (path: RelativePath, trace: LinkTrace): void => {
      const before = traces.get(path);
      if (before !== undefined && sameTrace(before, trace)) return;
      traces.set(path, trace);
      index = undefined;
      changed = true;
    },
    /** Ends a scan of this scope (undefined: the whole source). Removes recorded paths of the scope that are not in `noted`. */
    retain: (scope: readonly RelativePath[] | undefined, noted: ReadonlySet<RelativePath>): void => {
      for (const path of traces.keys()) {
        if (noted.has(path) || (scope !== undefined && !isBelowAny(path, scope))) continue;
        traces.delete(path);
        index = undefined;
        changed = true;
      }
      if (!changed) return;
      changed = false;
      onChange();
    },
    /** Paths that lead through links to `path` or to something below it. */
    touchedBy: (path: RelativePath): readonly RelativePath[] => {
      if (traces.size === 0) return [];
      index ??= indexOf(traces);
      const touched = new Set(index.points.get(path));
      for (const folder of upward(path)) {
        for (const link of index.targets.get(folder) ?? []) touched.add(link + path.slice(folder.length));
      }
      touched.delete(path);
      return [...touched];
    },
    watches: (): LinkWatches => {
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
    /** Sets the listener, which is called after a scan that found other links than before. There is one at a time. */
    listen: (listener: (() => void) | undefined): void => {
      onChange = listener ?? (() => undefined);
    },
  };
}

interface Index {
  /** The paths that lead to each point, and to each folder above a point. */
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
