import { agreeable, approvalsOf, type Approval } from "../operator/approve.ts";
import type { Activity, DaemonActivity } from "../ledger/activity.ts";
import type { RelativePath } from "../plan/model.ts";
import { pathBelow } from "../../lib/path-below.ts";
import { outsideSources, unknownSource } from "../disk/source-path.ts";
import type { SourceSync } from "../source/source.ts";
import type { Retried } from "../operator/offline.ts";
import type { LogQuery } from "../operator/read-activity.ts";
import type { Parts } from "./parts.ts";
import type { DaemonSources } from "./sources.ts";

/**
 * What a person may ask of a running daemon. `folder` is a source's folder, default all of them; one that is none
 * throws `source_unknown`. `path` is absolute: a file or folder of a source.
 */
export interface Operations {
  /** Sends nothing for the sources from now on, across restarts; requests under way end. Resolves when that is on disk. */
  pause(folder?: string): Promise<readonly string[]>;
  /** Goes on with what came up meanwhile. */
  resume(folder?: string): Promise<readonly string[]>;
  /** Has sources looked at as a whole. */
  rescan(folder?: string): readonly string[];
  /**
   * A person agrees to what is held, and to another root; returns what was agreed to. `token` names what the person saw;
   * without it all that is held now is agreed to. Throws `approval_changed` where it is something else by now.
   */
  approve(folder?: string, token?: string): readonly Approval[];
  /** Tries again what failed or was put aside. */
  retry(path?: string): Promise<readonly Retried[]>;
  /** The newest activities, oldest first. */
  recent(query: LogQuery): readonly DaemonActivity[];
  /** What the daemon is about to do with a file. */
  about(path: string): FileActivity;
  /** Calls the listener with every activity from now on, until the function that it returns is called. */
  follow(listener: (activity: DaemonActivity) => void): () => void;
}

/** What goes on with a file, beyond what the ledger says of it. */
export interface FileActivity {
  /** Something is left to do with it: it is under way, or looked at again later. */
  readonly pending: boolean;
  /** It is read, sent or deleted right now, or as soon as its turn comes. */
  readonly underWay: boolean;
}

/** Opens the operations on a daemon. */
export function openOperations(parts: Parts, sources: DaemonSources): Operations {
  const { ledger, paths, listeners } = parts;

  const chosen = (folder: string | undefined): readonly SourceSync[] => {
    const all = sources.all();
    if (folder === undefined) return all;
    const found = all.filter((source) => rootOf(source) === folder);
    if (found.length === 0) throw unknownSource(folder, all.map(rootOf));
    return found;
  };
  const setPaused = async (folder: string | undefined, paused: boolean): Promise<readonly string[]> => {
    const found = chosen(folder);
    for (const source of found) if (paused) source.pause();
    await ledger.write(() => {
      for (const { id } of found) ledger.operator.setPaused(id, paused);
    });
    for (const source of found) if (!paused) source.resume();
    return found.map(rootOf);
  };

  const told = ({ source, ...facts }: Activity): DaemonActivity => ({
    source: paths.get(source) ?? "",
    ...facts,
  });

  return {
    pause: (folder) => setPaused(folder, true),
    resume: (folder) => setPaused(folder, false),
    rescan: (folder) => {
      const found = chosen(folder);
      for (const source of found) source.hint(undefined);
      return found.map(rootOf);
    },
    approve: (folder, token) => {
      ledger.flush();
      const rows = agreeable(
        ledger.sources,
        folder,
        () => chosen(folder).map(({ id }) => ledger.sources.get(id)),
        token,
      );
      const agreed = approvalsOf(ledger.sources, rows);
      for (const { id } of rows) {
        ledger.note(() => ledger.sources.approve(id));
        sources
          .all()
          .find((source) => source.id === id)
          ?.hint(undefined);
      }
      sources.removals()?.begin();
      return agreed;
    },
    retry: async (path) => {
      const targets =
        path === undefined
          ? sources.all().map((source) => ({ source, below: undefined }))
          : [placeOf(sources.all(), path)];
      const tried: Retried[] = [];
      await ledger.write(() => {
        for (const { source, below } of targets)
          tried.push({ source: rootOf(source), ...ledger.operator.again(source.id, below) });
      });
      for (const { source, below } of targets) {
        source.retryDeletes(below);
        source.hint(below);
      }
      return tried;
    },
    recent: ({ limit, path }) => {
      const place = path === undefined ? undefined : placeOf(sources.all(), path);
      return parts.read(() => {
        ledger.flush();
        const found =
          place === undefined
            ? ledger.activity.recent(limit)
            : ledger.activity.recentAt(place.source.id, place.below, limit);
        return found.toReversed().map(told);
      }, []);
    },
    about: (path) => {
      ledger.flush();
      const { source, below } = placeOf(sources.all(), path);
      if (below === undefined) return { pending: !source.isIdle(), underWay: source.activity().backlog > 0 };
      return { pending: source.isPending(below), underWay: source.isUnderWay(below) };
    },
    follow: (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}

/** A place in a source: its root, or a path below it. */
export interface SourcePlace<S> {
  readonly source: S;
  /** Undefined: the source as a whole. */
  readonly below: RelativePath | undefined;
}

/** The source that an absolute path lies in. Throws `outside_sources`. */
export function placeOf(sources: readonly SourceSync[], path: string): SourcePlace<SourceSync> {
  for (const source of sources) {
    const below = pathBelow(rootOf(source), path);
    if (below !== undefined) return { source, below: below === "" ? undefined : below };
  }
  throw outsideSources(path, sources.map(rootOf));
}

/** The folder of a source. */
export function rootOf({ rules }: SourceSync): string {
  return rules.source.absolutePath;
}
