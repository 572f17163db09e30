import type { Sqlite } from "../database/open.ts";
import { OPEN_LOSS } from "./rows.ts";

/** Deletes of a source and a person's agreement to them. */
export type SourceDeletes = ReturnType<typeof prepareDeletes>;

/** Prepares the statements over deletes of sources. */
export function prepareDeletes(db: Sqlite) {
  const doom = db.prepare(
    "UPDATE files SET state = 'doomed' WHERE source = ? AND state = 'held' AND state <> 'agreed'",
  );
  const setApproved = db.prepare(
    "UPDATE sources SET approved = 1 WHERE id = ? AND (active = 0 OR (halted IS NOT NULL AND halt_dev IS NOT NULL))",
  );
  const agreeToLoss = db.prepare(
    // Nothing of a source that left the configuration is sent again: an approval of it concerns its removal.
    `UPDATE sources SET loss_agreed = 1 WHERE id = ? AND active = 1 AND ${OPEN_LOSS}`,
  );
  const approvalUsed = db.prepare("UPDATE sources SET approved = 0 WHERE id = ?");
  const withResource = db
    .prepare<[number], number>(
      `SELECT agreed + (SELECT count(*) FROM files WHERE source = sources.id AND state <> 'agreed'
         AND state <> 'doomed' AND doc_id IS NOT NULL) FROM sources WHERE id = ?`,
    )
    .pluck();
  const heldMark = db
    .prepare<[number], string>(
      // Sums of ids and of their squares, read from the index alone: a status may ask for it four times a second.
      `SELECT count(*) || '-' || total(id) || '-' || total((id % 1000003) * (id % 1000003)) FROM files
       WHERE source = ? AND state = 'held' AND state <> 'agreed'`,
    )
    .pluck();
  const deletedSince = db
    .prepare<[number, number], number>(
      "SELECT coalesce(sum(files), 0) FROM deletes_lately WHERE source = ? AND at_ms > ?",
    )
    .pluck();
  const countDeletes = db.prepare("INSERT INTO deletes_lately (source, at_ms, files) VALUES (?, ?, ?)");
  const forgetDeletes = db.prepare(
    "DELETE FROM deletes_lately WHERE source = ? AND (at_ms <= ? OR at_ms > ?)",
  );

  return {
    /**
     * Returns how many files have a resource, in any state: failed, parked and held ones count, those whose delete a
     * person agreed to do not.
     */
    withResource: (id: number): number => withResource.get(id) ?? 0,
    /** Returns a fingerprint of the rows that are held and not agreed to. It changes when any joins or leaves. */
    heldMark: (id: number): string => heldMark.get(id) ?? "",
    /** Returns how many deletes began after a time. */
    deletedSince: (id: number, sinceMs: number): number => deletedSince.get(id, sinceMs) ?? 0,
    /**
     * Counts deletes that begin. Forgets those from before `sinceMs`, and those from the future of a clock that was
     * wrong.
     */
    countDeletes: (id: number, atMs: number, files: number, sinceMs: number): void => {
      forgetDeletes.run(id, sinceMs, atMs);
      countDeletes.run(id, atMs, files);
    },
    /**
     * Records that a person agrees to the held deletes and to the other root that halts the source, if there is one.
     * Nobody can agree to a missing folder, because what will replace it is unknown.
     */
    approve: (id: number): void => {
      // While nothing is sent because the service lost much, that is what a person sees and agrees to.
      if (agreeToLoss.run(id).changes > 0) return;
      doom.run(id);
      setApproved.run(id);
    },
    approvalUsed: (id: number): void => void approvalUsed.run(id),
  };
}
