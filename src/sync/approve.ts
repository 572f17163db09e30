import { existsSync } from "node:fs";
import { KbsyncError } from "../lib/failure.ts";
import { ledgerFile } from "./ledger/ledger.ts";
import { openSqlite } from "./ledger/open.ts";
import { openSources, type RemovedSource, type SourceRow, type Sources } from "./ledger/sources.ts";
import { changeLedger, chosenSources } from "./offline.ts";

/** What a person agreed to. */
export interface Approval {
  readonly source: string;
  /**
   * Deletes that were held, or files missing from the folder before which the source stands still; 0 for a word on what
   * the service has lost, which is sent again.
   */
  readonly held: number;
  readonly reason: string;
}

/** Why the resources of a source that left the configuration are kept, in words. */
export const REMOVED_REASON = "removed from the configuration";

/**
 * What there is to agree to in these sources: nothing where nothing is held and none stands still. Before a missing
 * folder a source stands still too, but to that nobody can agree: what will come in its place is not known.
 */
export function approvalsOf(rows: readonly (SourceRow | RemovedSource)[]): Approval[] {
  return rows.flatMap((row) => {
    const { path, held, halted, holdReason, haltRoot, haltFiles, lost } = row;
    if ("kept" in row) return [{ source: path, held: row.kept, reason: REMOVED_REASON }];
    if (lost !== null) return [{ source: path, held: 0, reason: lost }];
    if (halted !== null && haltRoot !== undefined)
      return [{ source: path, held: Math.max(held, haltFiles), reason: halted }];
    return held === 0 ? [] : [{ source: path, held, reason: holdReason ?? "deletes held before" }];
  });
}

/**
 * The sources that a person's word is about: the one of that folder, which may have left the configuration, or all that
 * are in it. To the end of a source that left, only its name agrees. Throws `source_unknown`, and `source_missing` for a
 * folder that is not there.
 */
export function agreeable(
  sources: Sources,
  folder: string | undefined,
  configured: () => readonly SourceRow[],
): readonly (SourceRow | RemovedSource)[] {
  const removed = sources.removed().find(({ path }) => path === folder);
  if (removed !== undefined) return [removed];
  const rows = configured();
  const [row] = rows;
  if (folder !== undefined && row !== undefined && row.halted !== null && approvalsOf(rows).length === 0) {
    throw new KbsyncError(`${folder}: ${row.halted}; to that nobody can agree`, {
      code: "source_missing",
      subject: folder,
      hint: "Bring the folder back; or take the source out of the configuration, and agree then to the end of its resources.",
    });
  }
  return rows.filter((each) => approvalsOf([each]).length > 0);
}

/** What there is to agree to, as `approveHeld` would find it, with nothing changed; a daemon may run meanwhile. */
export function heldNow(stateDir: string, folder: string | undefined): Approval[] {
  const file = ledgerFile(stateDir);
  if (!existsSync(file)) return [];
  const db = openSqlite(file, { readonly: true });
  try {
    return approvalsOf(agreeable(openSources(db), folder, () => chosenSources(db, folder)));
  } finally {
    db.close();
  }
}

/**
 * Notes in the ledger that a person agrees to the deletes that are held, and to the folders as they are now; the next
 * pass does them. `folder` is a source's, undefined all of them. Returns what was agreed to, which is nothing where
 * nothing is held. Throws `state_locked` while a daemon works on the state folder, and as `agreeable` does.
 */
export function approveHeld(stateDir: string, folder: string | undefined): Approval[] {
  const approvals = changeLedger(stateDir, (db) => {
    const sources = openSources(db);
    const rows = agreeable(sources, folder, () => chosenSources(db, folder));
    for (const { id } of rows) sources.approve(id);
    return approvalsOf(rows);
  });
  return approvals ?? [];
}
