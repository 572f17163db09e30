import { existsSync } from "node:fs";
import type { DaemonActivity } from "../ledger/activity.ts";
import { openActivity, type Activity } from "../ledger/activity.ts";
import { ledgerFile } from "../ledger/ledger.ts";
import { openSqlite } from "../ledger/open.ts";
import { openSources } from "../ledger/sources.ts";
import { pathBelow } from "../../lib/path-below.ts";
import { outsideSources } from "../disk/source-path.ts";

/** Which activity is asked for. */
export interface LogQuery {
  readonly limit: number;
  /** Absolute path of a file or folder; default everything. */
  readonly path?: string | undefined;
}

/**
 * What was done lately, oldest first, from the ledger alone. Undefined: there is no ledger yet. Throws
 * `outside_sources`.
 */
export function readActivity(
  stateDir: string,
  { limit, path }: LogQuery,
): readonly DaemonActivity[] | undefined {
  const file = ledgerFile(stateDir);
  if (!existsSync(file)) return undefined;
  const db = openSqlite(file, { readonly: true });
  try {
    const log = openActivity(db);
    const sources = openSources(db).active();
    const folders = new Map(sources.map((source) => [source.id, source.path]));
    const place =
      path === undefined ? undefined : sources.find((source) => pathBelow(source.path, path) !== undefined);
    if (path !== undefined && place === undefined) throw outsideSources(path, [...folders.values()]);
    const below = place === undefined || path === undefined ? "" : pathBelow(place.path, path);
    const found =
      place === undefined
        ? log.recent(limit)
        : log.recentAt(place.id, below === "" ? undefined : below, limit);
    const told = ({ source, ...facts }: Activity): DaemonActivity => ({
      source: folders.get(source) ?? "",
      ...facts,
    });
    return found.toReversed().map(told);
  } finally {
    db.close();
  }
}
