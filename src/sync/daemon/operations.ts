import type { DaemonActivity } from "../../wire/daemon-files.ts";
import type { FileActivity } from "../../wire/daemon.ts";
import { type Commands, openCommands, type WakeUps } from "../operator/commands.ts";
import type { RelativePath } from "../plan/model.ts";
import { pathBelow } from "../../lib/path-below.ts";
import { outsideSources, unknownSource } from "../disk/source-path.ts";
import type { SourceSync } from "../source/source.ts";
import type { Parts } from "./parts.ts";
import type { DaemonSources } from "./sources.ts";

/** Operations of a running daemon, in addition to the commands on its ledger. */
export interface Operations extends Commands {
  /** Compares whole sources with the disk: the one of that folder, or all. Throws `source_unknown`. */
  rescan(folder?: string): readonly string[];
  /** The daemon's current work on a file. Throws `outside_sources`. */
  about(path: string): FileActivity;
  /** Adds a listener for activities. Returns a function that removes it. */
  follow(listener: (activity: DaemonActivity) => void): () => void;
}

/** Opens the operations on a daemon. */
export function openOperations(parts: Parts, sources: DaemonSources): Operations {
  const { ledger, listeners } = parts;
  const source = (id: number): SourceSync | undefined => sources.all().find((each) => each.id === id);
  const wakeUps: WakeUps = {
    pause: (id) => source(id)?.pause(),
    resume: (id) => source(id)?.resume(),
    check: (id, below) => source(id)?.hint(below),
    retryDeletes: (id, below) => source(id)?.retryDeletes(below),
    removeSources: () => sources.removals()?.begin(),
  };

  const commands = openCommands(ledger, {
    stateDir: parts.options.stateDir,
    sources: () => parts.options.sources,
    wakeUps,
  });
  /** A summary of the work may be read after the ledger has become unreadable or was closed. */
  const listed = <Q extends { readonly path?: string | undefined }, T>(
    query: Q,
    list: (query: Q) => readonly T[],
  ): readonly T[] => {
    if (query.path !== undefined) targetOf(sources.all(), query.path);
    return parts.read(() => list(query), []);
  };

  return {
    ...commands,
    troubled: (query) => listed(query, (named) => commands.troubled(named)),
    skipped: (query) => listed(query, (named) => commands.skipped(named)),
    rescan: (folder) => {
      const all = sources.all();
      const found = all.filter((each) => folder === undefined || rootOf(each) === folder);
      if (folder !== undefined && found.length === 0) throw unknownSource(folder, all.map(rootOf));
      for (const each of found) each.hint(undefined);
      return found.map(rootOf);
    },
    about: (path) => {
      ledger.flush();
      const { source: found, below } = targetOf(sources.all(), path);
      if (below === undefined) return { pending: !found.isIdle(), underWay: found.activity().backlog > 0 };
      return { pending: found.isPending(below), underWay: found.isInFlight(below) };
    },
    follow: (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}

/** A target in a source: its root, or a path below it. */
export interface SourceTarget<S> {
  readonly source: S;
  /** Undefined: the source as a whole. */
  readonly below: RelativePath | undefined;
}

/** Finds the source that contains an absolute path. Throws `outside_sources`. */
export function targetOf(sources: readonly SourceSync[], path: string): SourceTarget<SourceSync> {
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
