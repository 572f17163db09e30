import type { Retried } from "../../wire/daemon.ts";
import type { RelativePath } from "../plan/model.ts";
import type { Sqlite } from "./database/open.ts";
import { isAtOrBelow } from "./database/subtree.ts";

/**
 * Decisions of a person about sources, besides approvals. Changes are plain statements: run them inside a group commit.
 */
export type Operator = ReturnType<typeof openOperator>;

const BELOW = isAtOrBelow("path");

/** Prepares the statements. */
export function openOperator(db: Sqlite) {
  const setPaused = db.prepare("UPDATE sources SET paused = ? WHERE id = ?");
  const states = `state IN ('failed', 'parked', 'skipped') AND state <> 'agreed' AND (state <> 'skipped' OR @below IS NOT NULL)`;
  const count = db.prepare<[Selection], { state: "failed" | "parked" | "skipped"; count: number }>(
    `SELECT state, count(*) AS count FROM files WHERE source = @source AND ${states} AND ${BELOW} GROUP BY state`,
  );
  const again = db.prepare<[Selection]>(
    `UPDATE files SET rules_key = 0, tries = 0, retry_at_ms = NULL WHERE source = @source AND ${states} AND ${BELOW}`,
  );
  const unpark = db.prepare(
    "UPDATE files SET rules_key = 0 WHERE source = ? AND state = 'parked' AND state <> 'agreed' AND retry_at_ms <= ?",
  );
  const deletes = db
    .prepare<[Selection], number>(
      `SELECT count(*) FROM intents WHERE source = @source AND kind = 'delete' AND error_message IS NOT NULL AND ${BELOW}`,
    )
    .pluck();

  return {
    /** Stops or resumes sending for a source. */
    setPaused: (source: number, paused: boolean): void => void setPaused.run(Number(paused), source),
    /**
     * Has files that are not in agreement read again whatever their times, and parked ones now. `below` is a file or a
     * folder; undefined is the whole source.
     */
    again: (source: number, below: RelativePath | undefined): Omit<Retried, "source"> => {
      const scope: Selection = { source, below: below ?? null };
      const counts = Object.fromEntries(count.all(scope).map(({ state, count: files }) => [state, files]));
      again.run(scope);
      return {
        failed: counts["failed"] ?? 0,
        parked: counts["parked"] ?? 0,
        skipped: counts["skipped"] ?? 0,
        deletes: deletes.get(scope) ?? 0,
      };
    },
    /** Has parked files read again whose time has come. */
    unpark: (source: number, nowMs: number): void => void unpark.run(source, nowMs),
  };
}

interface Selection {
  readonly source: number;
  readonly below: RelativePath | null;
}
