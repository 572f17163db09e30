import type { Sqlite } from "../database/open.ts";
import { statementsOf } from "../database/statements.ts";
import { OPEN_LOSS } from "./rows.ts";

/** Prepares the statements over deletes of sources, and over a person's agreement to them. */
export function prepareDeletes(db: Sqlite) {
  const { run, change, value } = statementsOf(db);
  const doom = run<[id: number]>(
    "UPDATE files SET state = 'doomed' WHERE source = ? AND state = 'held' AND state <> 'agreed'",
  );
  const setApproved = run<[id: number]>(
    "UPDATE sources SET approved = 1 WHERE id = ? AND (active = 0 OR (halted IS NOT NULL AND halt_dev IS NOT NULL))",
  );
  const agreeToLoss = change<[id: number]>(
    // Nothing of a source that left the configuration is sent again: an approval of it concerns its removal.
    `UPDATE sources SET loss_agreed = 1 WHERE id = ? AND active = 1 AND ${OPEN_LOSS}`,
  );
  const withResource = value<[id: number], number>(
    `SELECT agreed + (SELECT count(*) FROM files WHERE source = sources.id AND state <> 'agreed'
       AND state <> 'doomed' AND doc_id IS NOT NULL) FROM sources WHERE id = ?`,
  );
  const heldMark = value<[id: number], string>(
    // Sums of ids and of their squares, read from the index alone: a status may ask for it four times a second.
    `SELECT count(*) || '-' || total(id) || '-' || total((id % 1000003) * (id % 1000003)) FROM files
     WHERE source = ? AND state = 'held' AND state <> 'agreed'`,
  );
  const deletedSince = value<[id: number, sinceMs: number], number>(
    "SELECT sum(files) FROM deletes_lately WHERE source = ? AND at_ms > ?",
  );
  const countDeletes = run("INSERT INTO deletes_lately (source, at_ms, files) VALUES (?, ?, ?)");
  const forgetDeletes = run("DELETE FROM deletes_lately WHERE source = ? AND (at_ms <= ? OR at_ms > ?)");

  return {
    /**
     * Returns how many files have a resource, in any state: failed, parked and held ones count, those whose delete a
     * person agreed to do not.
     */
    withResource: (id: number): number => withResource(id) ?? 0,
    /** Returns a fingerprint of the rows that are held and not agreed to. It changes when any joins or leaves. */
    heldMark: (id: number): string => heldMark(id) ?? "",
    /** Returns how many deletes began after a time. */
    deletedSince: (id: number, sinceMs: number): number => deletedSince(id, sinceMs) ?? 0,
    /**
     * Counts deletes that begin. Forgets those from before `sinceMs`, and those from the future of a clock that was
     * wrong.
     */
    countDeletes: (id: number, atMs: number, files: number, sinceMs: number): void => {
      forgetDeletes(id, sinceMs, atMs);
      countDeletes(id, atMs, files);
    },
    /**
     * Records that a person agrees to the held deletes and to the other root that halts the source, if there is one.
     * Nobody can agree to a missing folder, because what will replace it is unknown.
     */
    approve: (id: number): void => {
      // While nothing is sent because the service lost much, that is what a person sees and agrees to.
      if (agreeToLoss(id) > 0) return;
      doom(id);
      setApproved(id);
    },
    approvalUsed: run<[id: number]>("UPDATE sources SET approved = 0 WHERE id = ?"),
  };
}
