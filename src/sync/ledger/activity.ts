import type { DaemonActivity } from "../../wire/daemon-files.ts";
import type { RelativePath } from "../plan/model.ts";
import type { Sqlite } from "./database/open.ts";
import { statementsOf } from "./database/statements.ts";
import { isAtOrBelow } from "./database/subtree.ts";

/** The result of an action. `skipped`: the file is left out, which is not a failure. */
export type Outcome = DaemonActivity["outcome"];

/** One thing the daemon did, or failed to do, for the source with that number. */
export interface Activity extends Omit<DaemonActivity, "source"> {
  readonly source: number;
}

/** Retains about this many of the newest entries: some days of an ordinary folder, a megabyte or two. */
const ROWS_MAX = 10_000;
const PRUNE_EVERY = 1000;

/** The bounded log of what was done. */
export type ActivityLog = ReturnType<typeof openActivity>;

/** Prepares the activity statements. */
export function openActivity(db: Sqlite) {
  const { run, all } = statementsOf(db);
  const insert = run(
    `INSERT INTO activity (at_ms, source, path, from_path, doc_id, action, outcome, duration_ms, message)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  );
  const prune = run<[rows: number]>("DELETE FROM activity WHERE id <= (SELECT max(id) FROM activity) - ?");
  // No index: the table is bounded and read only when a person asks.
  const recent = all<[{ source: number | null; below: string | null; limit: number }], ActivityRow>(
    `SELECT at_ms AS atMs, source, path, from_path AS "from", doc_id AS docId, action, outcome,
       duration_ms AS durationMs, message
     FROM activity WHERE (@source IS NULL OR source = @source)
       AND (${isAtOrBelow("path")} OR ${isAtOrBelow("from_path")}) ORDER BY id DESC LIMIT @limit`,
  );
  let sincePrune = 0;
  return {
    /** A plain statement: run it inside a group commit. */
    add: ({ atMs, source, path, from, docId, action, outcome, durationMs, message }: Activity): void => {
      insert(atMs, source, path, from, docId, action, outcome, durationMs, message);
      sincePrune += 1;
      if (sincePrune < PRUNE_EVERY) return;
      sincePrune = 0;
      prune(ROWS_MAX);
    },
    /** Returns the newest entries, newest first, of everything, a source, or a file or folder of it. */
    recent: (
      limit: number,
      of?: { readonly source: number; readonly below?: RelativePath | undefined },
    ): Activity[] => recent({ source: of?.source ?? null, below: of?.below ?? null, limit }).map(activityOf),
  };
}

type ActivityRow = { readonly [K in keyof Activity]: Activity[K] | null };

function activityOf(row: ActivityRow): Activity {
  // The columns are as `add` wrote them. SQL's null stands for undefined.
  return Object.fromEntries(
    Object.entries(row).map(([name, value]) => [name, value ?? undefined]),
  ) as unknown as Activity;
}
