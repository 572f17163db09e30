import { existsSync } from "node:fs";
import { lockFolder } from "../../lib/folder-lock.ts";
import { ledgerFile } from "../ledger/ledger.ts";
import { isLedgerFailure, ledgerFailure, openSqlite, type Sqlite } from "../ledger/open.ts";
import { openOperator, type TriedAgain } from "../ledger/operator.ts";
import { openSources, type SourceRow } from "../ledger/sources.ts";
import { pathBelow } from "../../lib/path-below.ts";
import { outsideSources, unknownSource } from "../disk/source-path.ts";

/** What is tried again of a source. */
export interface Retried extends TriedAgain {
  readonly source: string;
}

/**
 * Changes the ledger of a state folder on which no daemon works, in one transaction. Undefined: there is no ledger yet.
 * Throws `state_locked` while a daemon works on it, `disk_full`, `ledger_unusable`.
 */
export function changeLedger<T>(stateDir: string, change: (db: Sqlite) => T): T | undefined {
  if (!existsSync(ledgerFile(stateDir))) return undefined;
  const lock = lockFolder(stateDir, "daemon");
  try {
    const db = openSqlite(ledgerFile(stateDir));
    try {
      return db.transaction(() => change(db)).immediate();
    } catch (error) {
      throw isLedgerFailure(error) ? ledgerFailure(error, ledgerFile(stateDir)) : error;
    } finally {
      db.close();
    }
  } finally {
    lock.release();
  }
}

/** The configured sources in the ledger, or the one of that folder. Throws `source_unknown`. */
export function chosenSources(db: Sqlite, folder: string | undefined): readonly SourceRow[] {
  const all = openSources(db).active();
  if (folder === undefined) return all;
  const found = all.filter(({ path }) => path === folder);
  if (found.length === 0)
    throw unknownSource(
      folder,
      all.map(({ path }) => path),
    );
  return found;
}

/** Pauses sources, or lets them go on, at the next start. `folder` is a source's, default all. Returns their folders. */
export function setPaused(stateDir: string, folder: string | undefined, paused: boolean): readonly string[] {
  const change = (db: Sqlite): readonly string[] => {
    const operator = openOperator(db);
    const found = chosenSources(db, folder);
    for (const { id } of found) operator.setPaused(id, paused);
    return found.map(({ path }) => path);
  };
  return changeLedger(stateDir, change) ?? [];
}

/** Has what failed or was put aside tried again by the next pass. `path` is an absolute path, default everything. */
export function retryFiles(stateDir: string, path: string | undefined): readonly Retried[] {
  const change = (db: Sqlite): readonly Retried[] => {
    const operator = openOperator(db);
    const all = openSources(db).active();
    const targets = all.flatMap(({ id, path: root }) => {
      const below = path === undefined ? "" : pathBelow(root, path);
      return below === undefined ? [] : [{ id, root, below: below === "" ? undefined : below }];
    });
    if (path !== undefined && targets.length === 0)
      throw outsideSources(
        path,
        all.map(({ path: root }) => root),
      );
    const tryAgain = ({ id, root, below }: (typeof targets)[number]): Retried => ({
      source: root,
      ...operator.again(id, below),
    });
    return targets.map(tryAgain);
  };
  return changeLedger(stateDir, change) ?? [];
}
