import type { ListedFile, ListedState } from "../../../wire/daemon-files.ts";
import type { RelativePath } from "../../plan/model.ts";
import type { Sqlite } from "../database/open.ts";

/** Why a file is not in agreement. */
export interface Trouble {
  readonly code: string;
  readonly message: string;
}

/** Which files to list. */
export interface ListedFiles {
  /** Largest number of files. */
  readonly limit: number;
  /** Default: those that are not in agreement, which are all but skipped ones. */
  readonly state?: ListedState | undefined;
  /** Only those of a source. */
  readonly source?: number | undefined;
  /** Only those at or below this path of the source. */
  readonly below?: RelativePath | undefined;
}

/** Lists what is not in agreement, for people. */
export interface FileTroubles {
  /** Returns files that are not searchable as they are on disk, and deletes that the service refuses, by source and path. */
  list(which: ListedFiles): ListedFile[];
  /** Returns a source's files at or below a path that are not in agreement, except skipped ones. */
  troubledAt(source: number, below: RelativePath | undefined): (Trouble & { readonly path: RelativePath })[];
}

interface ListedValues {
  readonly limit: number;
  readonly state: ListedState | null;
  readonly source: number | null;
  readonly below: RelativePath | null;
}

/** A condition for paths at or below the parameter. "0" follows "/" in byte order: the range is everything below it. */
const isBelow = (path: string): string =>
  `(@below IS NULL OR ${path} = @below OR (${path} >= @below || '/' AND ${path} < @below || '0'))`;
const isListed = (table: string): string =>
  `active = 1 AND (@source IS NULL OR sources.id = @source) AND ${isBelow(`${table}.path`)}`;

/** Prepares the lists for people. */
export function prepareTroubles(db: Sqlite): FileTroubles {
  const listed = db.prepare<[ListedValues], ListedFile>(
    `SELECT source, path, listed AS state, docId, code, message FROM (
       SELECT sources.path AS source, files.path AS path, doc_id AS docId,
         CASE state WHEN 'parked' THEN 'waiting' WHEN 'doomed' THEN 'held' ELSE state END AS listed,
         CASE WHEN state IN ('held', 'doomed') THEN state ELSE coalesce(error_code, state) END AS code,
         CASE state WHEN 'held' THEN coalesce(hold_reason, 'held before') WHEN 'doomed' THEN 'to be deleted, as agreed'
           ELSE coalesce(error_message, '') END AS message
       FROM files JOIN sources ON sources.id = files.source
       WHERE state IN ('failed', 'parked', 'held', 'doomed', 'skipped') AND state <> 'agreed'
         AND NOT (state = 'held' AND keeps = 1) AND ${isListed("files")}
       UNION ALL
       SELECT sources.path, intents.path, doc_id, 'failed', 'delete_refused', error_message
       FROM intents JOIN sources ON sources.id = intents.source
       WHERE kind = 'delete' AND error_message IS NOT NULL AND ${isListed("intents")})
     WHERE CASE WHEN @state IS NULL THEN listed <> 'skipped' ELSE listed = @state END
     ORDER BY source, path LIMIT @limit`,
  );
  const troubledAt = db.prepare<
    [{ source: number; below: string | null }],
    Trouble & { readonly path: RelativePath }
  >(
    `SELECT path, CASE WHEN state IN ('held', 'doomed', 'unsure') THEN state ELSE coalesce(error_code, state) END AS code,
       CASE state WHEN 'held' THEN coalesce((SELECT hold_reason FROM sources WHERE id = @source), 'held before')
         WHEN 'doomed' THEN 'to be deleted, as agreed' WHEN 'unsure' THEN 'an update had no answer yet'
         ELSE coalesce(error_message, '') END AS message
     FROM files WHERE source = @source AND state <> 'agreed' AND state <> 'skipped' AND ${isBelow("path")}
       AND NOT (state = 'held' AND (SELECT keeps FROM sources WHERE id = @source) = 1)
     UNION ALL
     SELECT path, 'delete_refused', error_message FROM intents
     WHERE source = @source AND kind = 'delete' AND error_message IS NOT NULL AND ${isBelow("path")}
     ORDER BY path`,
  );

  return {
    list: ({ limit, state, source, below }) =>
      listed.all({ limit, state: state ?? null, source: source ?? null, below: below ?? null }),
    troubledAt: (source, below) => troubledAt.all({ source, below: below ?? null }),
  };
}
