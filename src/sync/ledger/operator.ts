import type { Retried } from "../../wire/daemon.ts";
import type { RelativePath } from "../plan/model.ts";
import type { Sqlite } from "./database/open.ts";
import { statementsOf } from "./database/statements.ts";
import { isAtOrBelow } from "./database/subtree.ts";

type Selection = [{ readonly source: number; readonly below: RelativePath | undefined }];

/**
 * Prepares the decisions of a person about sources, besides approvals. Changes are plain statements: run them inside a group
 * commit.
 */
export function openOperator(db: Sqlite) {
  const { run, all, value } = statementsOf(db);
  const setPaused = run("UPDATE sources SET paused = ? WHERE id = ?");
  const below = isAtOrBelow("path");
  const selected = `source = @source AND ${below} AND state IN ('failed', 'parked', 'skipped') AND state <> 'agreed'
    AND (state <> 'skipped' OR @below IS NOT NULL)`;
  const count = all<Selection, { state: "failed" | "parked" | "skipped"; files: number }>(
    `SELECT state, count(*) AS files FROM files WHERE ${selected} GROUP BY state`,
  );
  const again = run<Selection>(
    `UPDATE files SET rules_key = 0, tries = 0, retry_at_ms = NULL WHERE ${selected}`,
  );
  const deletes = value<Selection, number>(
    `SELECT count(*) FROM intents WHERE source = @source AND kind = 'delete' AND error_message IS NOT NULL AND ${below}`,
  );

  return {
    /** Stops or resumes sending for a source. */
    setPaused: (source: number, paused: boolean): void => setPaused(Number(paused), source),
    /**
     * Has files that are not in agreement read again whatever their times, and parked ones now. `path` is a file or a
     * folder; undefined is the whole source.
     */
    again: (source: number, path: RelativePath | undefined): Omit<Retried, "source"> => {
      const scope = { source, below: path };
      const counts = Object.fromEntries(count(scope).map(({ state, files }) => [state, files]));
      again(scope);
      return {
        failed: counts["failed"] ?? 0,
        parked: counts["parked"] ?? 0,
        skipped: counts["skipped"] ?? 0,
        deletes: deletes(scope) ?? 0,
      };
    },
    /** Has parked files read again whose time has come. */
    unpark: run<[source: number, nowMs: number]>(
      "UPDATE files SET rules_key = 0 WHERE source = ? AND state = 'parked' AND state <> 'agreed' AND retry_at_ms <= ?",
    ),
  };
}
