import type { SkippedFile, TroubledFile, TroubledState } from "../../../wire/daemon-files.ts";
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
  /** Only those of a source. */
  readonly source?: number | undefined;
  /** Only those at or below this path of the source. */
  readonly below?: RelativePath | undefined;
}

/** Lists what is not in agreement, for people. */
export interface FileTroubles {
  /** Returns files that are not in agreement, and deletes that the service refuses, by source and path. */
  troubled(which: ListedFiles & { readonly state?: TroubledState | undefined }): TroubledFile[];
  skipped(which: ListedFiles): SkippedFile[];
  /** Returns a source's files at or below a path that are not in agreement, except skipped ones. */
  troubledAt(source: number, below: RelativePath | undefined): (Trouble & { readonly path: RelativePath })[];
}

interface ListedValues {
  readonly limit: number;
  readonly source: number | null;
  readonly below: RelativePath | null;
}

function listedValues({ limit, source, below }: ListedFiles): ListedValues {
  return { limit, source: source ?? null, below: below ?? null };
}

/** A condition for paths at or below the parameter. "0" follows "/" in byte order: the range is everything below it. */
const isBelow = (path: string): string =>
  `(@below IS NULL OR ${path} = @below OR (${path} >= @below || '/' AND ${path} < @below || '0'))`;
const isListed = (table: string): string =>
  `active = 1 AND (@source IS NULL OR sources.id = @source) AND ${isBelow(`${table}.path`)}`;

/** Prepares the lists for people. */
export function prepareTroubles(db: Sqlite): FileTroubles {
  const troubled = db.prepare<[ListedValues & { state: TroubledState | null }], TroubledFile>(
    `SELECT sources.path AS source, files.path AS path, state, doc_id AS docId,
       CASE WHEN state IN ('held', 'doomed') THEN state ELSE coalesce(error_code, state) END AS code,
       CASE state WHEN 'held' THEN coalesce(hold_reason, 'held before') WHEN 'doomed' THEN 'to be deleted, as agreed'
         ELSE coalesce(error_message, '') END AS message
     FROM files JOIN sources ON sources.id = files.source
     WHERE state IN ('failed', 'parked', 'held', 'doomed') AND state <> 'agreed' AND ${isListed("files")}
       AND coalesce(@state, '') IN ('', CASE state WHEN 'parked' THEN 'waiting' WHEN 'doomed' THEN 'held' ELSE state END)
     UNION ALL
     SELECT sources.path, intents.path, 'failed', doc_id, 'delete_refused', error_message
     FROM intents JOIN sources ON sources.id = intents.source
     WHERE kind = 'delete' AND error_message IS NOT NULL AND coalesce(@state, 'failed') = 'failed' AND ${isListed("intents")}
     ORDER BY source, path LIMIT @limit`,
  );
  const skipped = db.prepare<[ListedValues], SkippedFile>(
    `SELECT sources.path AS source, files.path, coalesce(error_message, '') AS reason
     FROM files JOIN sources ON sources.id = files.source
     WHERE state = 'skipped' AND state <> 'agreed' AND ${isListed("files")}
     ORDER BY files.source, files.path LIMIT @limit`,
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
     UNION ALL
     SELECT path, 'delete_refused', error_message FROM intents
     WHERE source = @source AND kind = 'delete' AND error_message IS NOT NULL AND ${isBelow("path")}
     ORDER BY path`,
  );

  return {
    troubled: ({ state, ...which }) => troubled.all({ ...listedValues(which), state: state ?? null }),
    skipped: (which) => skipped.all(listedValues(which)),
    troubledAt: (source, below) => troubledAt.all({ source, below: below ?? null }),
  };
}
