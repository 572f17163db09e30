import type { FileState, RelativePath } from "../../plan/model.ts";
import type { Sqlite } from "../database/open.ts";
import { statementsOf } from "../database/statements.ts";
import { isAtOrBelow } from "../database/subtree.ts";

/** Why a file is not in agreement. */
export interface Trouble {
  readonly code: string;
  readonly message: string;
}

/** A row that is not in agreement, or a delete that the service refuses. */
export interface TroubledFile extends Trouble {
  /** The source's folder. */
  readonly source: string;
  readonly path: RelativePath;
  readonly state: FileState;
  /** The resource, if searches find some version of it. */
  readonly docId: string | null;
}

/** Which of them to list. */
export interface TroubledFiles {
  /** Largest number of them. Default: no limit. */
  readonly limit?: number;
  /** Default: all but skipped ones. */
  readonly states?: readonly FileState[] | undefined;
  /** Only those of a source. */
  readonly source?: number | undefined;
  /** Only those at or below this path of the source. */
  readonly below?: RelativePath | undefined;
}

const ALL: readonly FileState[] = ["unsure", "failed", "parked", "held", "doomed"];

const isListed = (table: string): string =>
  `active = 1 AND (@source IS NULL OR sources.id = @source) AND ${isAtOrBelow(`${table}.path`)}`;

/** Prepares the list. */
export function prepareTroubles(db: Sqlite) {
  const troubled = statementsOf(db).all<
    [{ limit: number; states: string; source: number | undefined; below: RelativePath | undefined }],
    TroubledFile
  >(
    `SELECT sources.path AS source, files.path AS path, CASE findable WHEN 1 THEN doc_id END AS docId, state, coalesce(error_code, state) AS code,
       CASE state WHEN 'held' THEN coalesce(hold_reason, 'held before') ELSE coalesce(error_message, '') END AS message
     FROM files JOIN sources ON sources.id = files.source
     WHERE state <> 'agreed' AND state IN (SELECT value FROM json_each(@states))
       AND NOT (state = 'held' AND keeps = 1) AND ${isListed("files")}
     UNION ALL
     SELECT sources.path, intents.path, doc_id, 'failed', 'delete_refused', error_message
     FROM intents JOIN sources ON sources.id = intents.source
     WHERE kind = 'delete' AND error_message IS NOT NULL AND 'failed' IN (SELECT value FROM json_each(@states))
       AND ${isListed("intents")}
     ORDER BY source, path LIMIT @limit`,
  );
  return {
    /** Returns rows that are not in agreement, and deletes that the service refuses as failed, by source and path. */
    troubled: ({ limit = -1, states = ALL, source, below }: TroubledFiles): TroubledFile[] =>
      troubled({ limit, states: JSON.stringify(states), source, below }),
  };
}
