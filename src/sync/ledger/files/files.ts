import type { FileState, ListedResource, RelativePath, ScanEntry, Shape } from "../../plan/model.ts";
import { sentBefore, versionsOf } from "../../plan/versions.ts";
import type { Sqlite } from "../database/open.ts";
import { statementsOf } from "../database/statements.ts";
import { type FileRows, prepareRows } from "./rows.ts";
import { type Trouble, prepareTroubles } from "./troubles.ts";
import { type Observed, type Stored, observedColumns } from "./observed.ts";
import { openShapes, type Shapes } from "./shapes.ts";

/** The rows of files. Changes are plain statements: run them inside a group commit. */
export type Files = ReturnType<typeof openFiles>;

/** A file that failed or is left out. */
export interface FileTrouble extends Trouble {
  readonly entry: ScanEntry;
  readonly rulesKey: number;
  readonly state: "failed" | "skipped" | "parked";
  /** The service certainly has what the row says. Otherwise the next change is sent whole. */
  readonly sure: boolean;
  readonly retryAtMs?: number;
}

/** A resource that a list shows, and the file that it belongs to. */
export interface AssignedResource {
  readonly entry: ScanEntry;
  readonly docId: string;
  /** `kb:` and the tag of its bytes. */
  readonly hash: string;
  readonly title: string;
  readonly label: string;
  readonly sent: string;
  readonly shape: Shape;
  readonly fileUrl: string | undefined;
  readonly metadataHash: string | undefined;
  /** The service is reading a version of it, or could not: the row is unsure. */
  readonly isUnfinished: boolean;
}

/** Prepares the statements over files. */
export function openFiles(db: Sqlite) {
  const shapes = openShapes(db);
  const rows = prepareRows(db, shapes);
  return {
    ...rows,
    ...prepareOutcomes(db, shapes, rows),
    ...prepareStates(db),
    ...preparePaths(db, shapes),
    ...prepareTroubles(db),
  };
}

function prepareOutcomes(db: Sqlite, shapes: Shapes, { living, latestMs }: FileRows) {
  const { run, change, value } = statementsOf(db);
  const insert = change(
    `INSERT INTO files (source, path, doc_id, state, size_bytes, mtime_ms, ctime_ms, ino, rules_key, hash, digest, title, label,
       extractor_version, shape, file_url, metadata_hash, stored_label, found_digest, stored_ms, acknowledged_ms, findable)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
  );
  // The stored form of a text or title remains valid until it changes; the time, until something is sent.
  const agree = run(
    `UPDATE files SET stored_label = coalesce(?, CASE label WHEN ? THEN stored_label END),
       found_digest = coalesce(?, CASE digest WHEN ? THEN found_digest END),
       stored_ms = CASE WHEN ? THEN ? ELSE stored_ms END, findable = max(?, findable AND doc_id IS ?), doc_id = ?, state = ?, size_bytes = ?, mtime_ms = ?, ctime_ms = ?, ino = ?, rules_key = ?,
       hash = ?, digest = ?, title = ?, label = ?, extractor_version = ?, shape = ?, file_url = ?, metadata_hash = ?, acknowledged_ms = ?, error_code = NULL,
       error_message = NULL, tries = 0, retry_at_ms = NULL WHERE id = ?`,
  );
  const warn = run("UPDATE files SET warning = ? WHERE doc_id = ?");
  const fail = run(
    `UPDATE files SET state = @state, size_bytes = @sizeBytes, mtime_ms = @mtimeMs, ctime_ms = @ctimeMs, ino = @ino,
       rules_key = @rulesKey, error_code = @code, error_message = @message, retry_at_ms = @retryAtMs, tries = tries + 1,
       hash = CASE WHEN @sure THEN hash ELSE '' END WHERE id = @id`,
  );
  const insertFailed = run(
    `INSERT INTO files (source, path, state, size_bytes, mtime_ms, ctime_ms, ino, rules_key, error_code, error_message,
       retry_at_ms, tries, hash, digest, title, label, extractor_version)
     VALUES (@source, @path, @state, @sizeBytes, @mtimeMs, @ctimeMs, @ino, @rulesKey, @code, @message,
       @retryAtMs, 1, '', '', '', '', 0)`,
  );
  const tries = value<[id: number], number>("SELECT tries FROM files WHERE id = ?");
  const acknowledgements = openAcknowledgements(latestMs);

  return {
    /**
     * Inserts a row if its path has no living row and its resource no owner. Reports whether it did. The indexes that the row
     * enters anyway answer both questions.
     */
    insert: (
      source: number,
      docId: string | null,
      state: FileState,
      observed: Observed,
      { label, digest, atMs }: Stored = {},
    ): boolean => {
      const columns = [state, ...observedColumns(observed, shapes), label, digest, atMs];
      const findable = Number(state !== "unsure");
      const { path } = observed.entry;
      return insert(source, path, docId, ...columns, acknowledgements.next(), findable) === 1;
    },
    /** Records what the service acknowledged; not `isExact`: and may not have read. Omit `stored` where nothing was sent. */
    agree: (id: number, docId: string, observed: Observed, stored?: Stored, isExact = true): void => {
      const { label, digest, atMs } = stored ?? {};
      const learned = [label, observed.label, digest, observed.digest, Number(stored !== undefined), atMs];
      const state: FileState = isExact ? "agreed" : "unsure";
      const columns = [...observedColumns(observed, shapes), acknowledgements.next()];
      agree(...learned, Number(isExact), docId, docId, state, ...columns, id);
    },
    /**
     * Records the part of a resource's document that the service could not read, in its words; undefined if it read all
     * of it.
     */
    warn: (docId: string, warning: string | undefined): void => warn(warning, docId),
    /** Records that a file failed or is left out, and creates a row if its path has none. */
    trouble: (source: number, id: number | undefined, { entry, ...what }: FileTrouble): void => {
      // A file without a row may have received one since: a list showed a resource of its own.
      id ??= living(source, entry.path)?.id;
      const values = { retryAtMs: undefined, ...entry, ...what, sure: Number(what.sure) };
      if (id === undefined) insertFailed({ ...values, source });
      else fail({ ...values, id });
    },
    tries: (id: number): number => tries(id) ?? 0,
  };
}

/** Gives each acknowledgement a time of its own, later than any before, even if the clock was set back. */
function openAcknowledgements(latestMs: FileRows["latestMs"]): { next(): number } {
  let lastMs: number | undefined;
  return {
    next: () => {
      lastMs = Math.max(Date.now(), (lastMs ?? latestMs()) + 1);
      return lastMs;
    },
  };
}

/** Rows of resources whose files a comparison did not find, by the tags of these files. A query for them reads all rows. */
function openAbsent(db: Sqlite) {
  const rows = statementsOf(db).all<[source: number], { id: number; sent: string }>(
    "SELECT id, sent FROM files WHERE source = ? AND path = title || ' [' || doc_id || ']'",
  );
  const bySource = new Map<number, ReadonlyMap<string, number>>();
  return {
    of: (source: number): ReadonlyMap<string, number> => {
      const known = bySource.get(source);
      if (known !== undefined) return known;
      const found = new Map(rows(source).map(({ id, sent }) => [versionsOf(sent)[0]?.file ?? "", id]));
      bySource.set(source, found);
      return found;
    },
    changed: (source: number): void => void bySource.delete(source),
  };
}

/** Prepares the statements that change the states of rows. */
function prepareStates(db: Sqlite) {
  const { run, value } = statementsOf(db);
  const setState = run("UPDATE files SET state = ? WHERE id = ?");
  const setStored = run(
    `UPDATE files SET found_digest = CASE WHEN @digest IN (digest, '') THEN found_digest ELSE @digest END,
       stored_label = CASE label WHEN @label THEN stored_label ELSE @label END WHERE id = @id`,
  );
  const depart = run("UPDATE files SET state = 'unsure', sent = ? WHERE id = ?");
  const countUnread = value<[source: number], number>(
    "SELECT count(*) FROM files WHERE source = ? AND hash LIKE 'kb:%'",
  );

  return {
    setState: (id: number, state: FileState): void => setState(state, id),
    /**
     * Records that a resource was found changed and is sent again. If it comes out the same, the service stores it that
     * way, and nobody changed it.
     */
    setStored: (id: number, { digest, label }: Pick<ListedResource, "digest" | "label">): void =>
      setStored({ id, digest, label }),
    /** Records that another version of a row's file is about to leave: the row is unsure until it is acknowledged. */
    depart: (id: number, sent: string): void => depart(sent, id),
    /** Returns how many rows `assign` inserted whose file was not read yet. */
    countUnread: (source: number): number => countUnread(source) ?? 0,
    /**
     * Holds a row whose file is gone. If it was not in agreement, its file must be read when it returns, whatever its
     * times. For an unsure row it is not even known which bytes the service has.
     */
    hold: run<[id: number]>(
      `UPDATE files SET rules_key = CASE state WHEN 'agreed' THEN rules_key ELSE 0 END,
         hash = CASE state WHEN 'unsure' THEN '' ELSE hash END, state = 'held' WHERE id = ?`,
    ),
    /** Records that the row's resource may differ from the row. The next change is sent whole, wherever its file is. */
    distrust: run<[id: number]>(
      `UPDATE files SET hash = CASE WHEN state IN ('agreed', 'unsure') THEN hash ELSE '' END,
         rules_key = CASE WHEN state IN ('held', 'doomed') THEN 0 ELSE rules_key END,
         state = CASE state WHEN 'agreed' THEN 'unsure' ELSE state END WHERE id = ?`,
    ),
    /**
     * Records that the row's resource is reported gone. Its file gets another one, and what may remain of this one is
     * deleted then. Without a shape: no update can give it the right one.
     */
    lose: run<[id: number]>(
      "UPDATE files SET state = 'unsure', shape = NULL, hash = '', rules_key = 0, findable = 0 WHERE id = ?",
    ),
    /** Has all files of a source read again, whatever their times. */
    reread: run<[source: number]>("UPDATE files SET rules_key = 0 WHERE source = ?"),
    /** Has mails that were sent as text read again, whatever their times. The index contains only mails. */
    rereadTextMails: run<[]>(
      `UPDATE files SET rules_key = 0 WHERE lower(substr(path, -4)) = '.eml' AND state = 'agreed'
         AND shape IN (SELECT id FROM shapes WHERE kind = 'content')`,
    ),
    /** Records that another resource, which no row has, took the place of a row's. */
    follow: run<[docId: string, before: string]>("UPDATE OR IGNORE files SET doc_id = ? WHERE doc_id = ?"),
    remove: run<[id: number]>(REMOVE),
    /**
     * Removes a row without a resource. A row that received one since it was read stays; otherwise nothing would record
     * that resource.
     */
    forget: run<[id: number]>("DELETE FROM files WHERE id = ? AND doc_id IS NULL"),
  };
}

const REMOVE = "DELETE FROM files WHERE id = ?";

/** Prepares the statements that give paths to rows. */
function preparePaths(db: Sqlite, shapes: Shapes) {
  const { run, insert, get, value } = statementsOf(db);
  const ownerOf = get<[docId: string], { id: number; findable: number }>(
    "SELECT id, findable FROM files WHERE doc_id = ?",
  );
  const assign = insert(
    `INSERT INTO files (source, path, doc_id, state, size_bytes, mtime_ms, ctime_ms, ino, rules_key, hash, digest, title, label,
       extractor_version, sent, shape, file_url, metadata_hash, findable)
     VALUES (@source, @path, @docId, @state, @sizeBytes, @mtimeMs, @ctimeMs, @ino, 0, @hash, '', @title, @label,
       0, @sent, @shapeId, @fileUrl, @metadataHash, @findable)`,
  );
  const absent = openAbsent(db);
  const repath = run<[path: string, id: number]>(
    "UPDATE files SET path = ?, rules_key = 0, state = CASE WHEN state = 'held' THEN 'agreed' ELSE state END WHERE id = ?",
  );
  const versionAt = get<[id: number], Parameters<typeof sentBefore>[0]>(
    "SELECT path, hash, extractor_version AS extractorVersion, sent FROM files WHERE id = ?",
  );
  const setSent = run<[sent: string, id: number]>("UPDATE files SET sent = ? WHERE id = ?");
  /** The service shows the marker of the former path until the move is sent. */
  const leave = (id: number): void => {
    const row = versionAt(id);
    if (row !== undefined) setSent(sentBefore(row), id);
    repath(`\0${id}`, id);
  };
  const sourceOf = value<[id: number], number>("SELECT source FROM files WHERE id = ?");
  const livingAt = "source = ? AND path = ? AND state NOT IN ('held', 'doomed')";
  const clear = run(`DELETE FROM files WHERE ${livingAt} AND doc_id IS NULL`);
  const doom = run(`UPDATE files SET state = 'doomed' WHERE ${livingAt}`);
  /** Takes a path from the row that has it. */
  const displace = (source: number | undefined, path: RelativePath): void => {
    clear(source, path);
    doom(source, path);
  };
  const remove = run<[id: number]>(REMOVE);
  const agree = run<[id: number]>("UPDATE files SET state = 'agreed' WHERE id = ?");

  return {
    /**
     * Inserts a row for a resource that a list shows, as its marker says. Its file is read at the next check. A row that has the
     * resource already, or the path, is replaced. Returns the row's id.
     */
    assign: (source: number, { entry, shape, isUnfinished, ...facts }: AssignedResource): number => {
      const before = ownerOf(facts.docId);
      if (before !== undefined) remove(before.id);
      displace(source, entry.path);
      const [state, findable] = isUnfinished ? ["unsure", before?.findable ?? 0] : ["agreed", 1];
      const shapeId = shapes.idOf(shape);
      const id = assign({ ...entry, ...facts, source, shapeId, state, findable });
      absent.changed(source);
      return id;
    },
    /**
     * Returns rows of resources whose file was not there when a list showed them, by the tag of the file in their marker. Their
     * path is the title with the id.
     */
    absent: absent.of,
    /** Restores a held row whose file is unchanged. A row that took its path meanwhile is displaced as by `repath`. */
    restore: (id: number, path: RelativePath): void => {
      displace(sourceOf(id), path);
      agree(id);
    },
    /**
     * Moves rows to other paths, rings included. Each is read again whatever its times. Rows that these paths have are
     * displaced: their resources must be deleted.
     */
    repath: (moves: readonly { readonly id: number; readonly to: RelativePath }[]): void => {
      // First out of the way, then to the target: within a swap or a ring each path is taken until its owner has left.
      // No path on a disk contains a NUL.
      for (const { id } of moves) leave(id);
      for (const { id, to } of moves) {
        displace(sourceOf(id), to);
        repath(to, id);
      }
    },
  };
}
