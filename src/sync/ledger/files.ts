import type { SkippedFile, TroubledFile, TroubledState } from "../../wire/daemon-files.ts";
import type { FileState, KnownFile, LedgerFile, RelativePath, ScanEntry, Shape } from "../plan/model.ts";
import type { Sqlite } from "./open.ts";

/** What the ledger records of a file when the service acknowledged it, or when a request is about to leave. */
export interface Observed {
  readonly entry: ScanEntry;
  readonly rulesKey: number;
  readonly hash: string;
  readonly digest: string;
  readonly title: string;
  readonly label: string;
  readonly extractorVersion: number;
  readonly shape: Shape;
  readonly fileUrl: string | undefined;
  /** Hash of the metadata, as `hashMetadata` gives it; absent if the service takes none. */
  readonly metadataHash?: string;
}

/** Returns what a row says about its file. */
export function observedOf(
  row: Omit<Observed, "entry" | "shape" | "fileUrl" | "metadataHash"> &
    ScanEntry &
    Pick<LedgerFile, "fileUrl" | "metadataHash">,
  shape: Shape,
): Observed {
  const { path, sizeBytes, mtimeMs, ctimeMs, ino } = row;
  const { rulesKey, hash, digest, title, label, extractorVersion } = row;
  return {
    entry: { path, sizeBytes, mtimeMs, ctimeMs, ino },
    rulesKey,
    hash,
    digest,
    title,
    label,
    extractorVersion,
    shape,
    fileUrl: row.fileUrl ?? undefined,
    ...(row.metadataHash !== null && { metadataHash: row.metadataHash }),
  };
}

/** How a service stored what it acknowledged, as far as it shows. */
export interface Stored {
  /** Label of title and description, if it stores other ones. */
  readonly label?: string;
  /** Digest of the text, if it stores another one. */
  readonly digest?: string;
  /** When it last changed the resource, by its clock. */
  readonly atMs?: number;
}

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

/** The rows of files. Changes are plain statements: run them inside a group commit. */
export interface Files extends FileRows, FileOutcomes, FileChanges, FileTroubles {}

/** Reads rows. */
interface FileRows {
  /**
   * Returns all rows of a source, unordered, read in pages on demand. A concurrent write may or may not be seen. It
   * never hides or repeats other rows.
   */
  all(source: number): Iterable<KnownFile>;
  /** Returns rows at or below any of the paths, read as `all` does. A row may appear twice if paths overlap. */
  below(source: number, paths: readonly RelativePath[]): Iterable<KnownFile>;
  /** Returns the row of a path, except held ones. */
  living(source: number, path: RelativePath): KnownFile | undefined;
  byInode(source: number, ino: number): KnownFile[];
  /** Returns the row that has a resource, in whatever state, with its source. */
  byDoc(docId: string): (KnownFile & { readonly source: number }) | undefined;
  get(id: number): LedgerFile | undefined;
  /** Returns at most `limit` rows of a source, in no particular order. */
  some(source: number, limit: number): KnownFile[];
  ownsDoc(docId: string): boolean;
  isEmpty(source: number): boolean;
}

/** Records the results of what was sent or read. */
interface FileOutcomes {
  insert(source: number, docId: string | null, state: FileState, observed: Observed, stored?: Stored): void;
  /**
   * Inserts an agreed row if its path has no living row and its resource no owner. Reports whether it did. The indexes
   * that the row enters anyway answer both questions.
   */
  insertFree(source: number, docId: string, observed: Observed, stored?: Stored): boolean;
  /** Records what the service acknowledged. Omit `stored` where nothing was sent. */
  agree(id: number, docId: string, observed: Observed, stored?: Stored): void;
  /**
   * Records the part of a resource's document that the service could not read, in its words; undefined if it read all
   * of it.
   */
  warn(docId: string, warning: string | undefined): void;
  /**
   * Records that a file failed or is left out, and creates a row if its path has none. `sure: false` means that the
   * service's state is unknown, so that the next change is sent whole.
   */
  trouble(
    source: number,
    id: number | undefined,
    what: {
      entry: ScanEntry;
      rulesKey: number;
      state: "failed" | "skipped" | "parked";
      sure: boolean;
      retryAtMs?: number;
    } & Trouble,
  ): void;
  tries(id: number): number;
}

/** Changes rows that exist. */
interface FileChanges {
  setState(id: number, state: FileState): void;
  /**
   * Holds a row whose file is gone. If it was not in agreement, its file must be read when it returns, whatever its
   * times. For an unsure row it is not even known which bytes the service has.
   */
  hold(id: number): void;
  /** Records that the row's resource may differ from the row. The next change is sent whole, wherever its file is. */
  distrust(id: number): void;
  /**
   * Records that the row's resource is reported gone. Its file gets another one, and what may remain of this one is
   * deleted then.
   */
  lose(id: number): void;
  /**
   * Gives the row another resource that holds what its own was acknowledged with. The row keeps its state and its
   * trouble.
   */
  exchange(
    id: number,
    docId: string,
    observed: Pick<Observed, "shape" | "fileUrl" | "metadataHash" | "rulesKey">,
    stored: Stored,
  ): void;
  /** Records that somebody changed the resource's title or description. Its file is checked again. */
  relabel(id: number, title: string, label: string): void;
  /** Reports whether some mail was sent as text. */
  hasTextMails(): boolean;
  /** Has those mails read again, whatever their times. */
  rereadTextMails(): void;
  /** Restores a held row whose file is unchanged. A row that took its path meanwhile is displaced as by `repath`. */
  restore(id: number, path: RelativePath): void;
  /**
   * Moves rows to other paths, rings included. Each is read again whatever its times. Rows that these paths have are
   * displaced: their resources must be deleted.
   */
  repath(moves: readonly { readonly id: number; readonly to: RelativePath }[]): void;
  remove(id: number): void;
  /**
   * Removes a row without a resource. A row that received one since it was read stays; otherwise nothing would record
   * that resource.
   */
  forget(id: number): void;
}

/** Lists what is not in agreement, for people. */
interface FileTroubles {
  /** Returns files that are not in agreement, and deletes that the service refuses, by source and path. */
  troubled(which: ListedFiles & { readonly state?: TroubledState | undefined }): TroubledFile[];
  skipped(which: ListedFiles): SkippedFile[];
  /** Returns a source's files at or below a path that are not in agreement, except skipped ones. */
  troubledAt(source: number, below: RelativePath | undefined): (Trouble & { readonly path: RelativePath })[];
}

const KNOWN = `id, path, doc_id AS docId, state, size_bytes AS sizeBytes, mtime_ms AS mtimeMs, ctime_ms AS ctimeMs, ino, rules_key AS rulesKey`;

interface ListedValues {
  readonly limit: number;
  readonly source: number | null;
  readonly below: RelativePath | null;
}

function listedValues({ limit, source, below }: ListedFiles): ListedValues {
  return { limit, source: source ?? null, below: below ?? null };
}

/** Rows of a page. The loop waits while they are read, for some milliseconds. */
const PAGE_ROWS = 1000;

/** Prepares the statements over files. */
export function openFiles(db: Sqlite): Files {
  const shapes = openShapes(db);
  const rows = prepareRows(db, shapes);
  return {
    ...rows,
    ...prepareOutcomes(db, shapes, rows),
    ...prepareChanges(db, shapes),
    ...prepareTroubles(db),
  };
}

function prepareRows(db: Sqlite, shapes: Shapes): FileRows {
  // By a range of ids over all sources: a page costs the same wherever this source's rows lie.
  const page = db.prepare<[number, number, number], KnownFile>(
    `SELECT ${KNOWN} FROM files WHERE id > ? AND id <= ? AND +source = ?`,
  );
  const lastId = db.prepare<[], number | null>("SELECT max(id) FROM files").pluck();
  const at = db.prepare<[number, string], KnownFile>(
    `SELECT ${KNOWN} FROM files WHERE source = ? AND path = ? AND state NOT IN ('held', 'doomed')`,
  );
  const under = db.prepare<[number, string, string, number], KnownFile>(
    `SELECT ${KNOWN} FROM files WHERE source = ? AND path >= ? AND path < ? AND state NOT IN ('held', 'doomed')
     ORDER BY path LIMIT ?`,
  );
  const held = db.prepare<[number], KnownFile>(
    `SELECT ${KNOWN} FROM files WHERE source = ? AND state IN ('held', 'doomed') AND state <> 'agreed'`,
  );
  const some = db.prepare<[number, number], KnownFile>(`SELECT ${KNOWN} FROM files WHERE source = ? LIMIT ?`);
  const byInode = db.prepare<[number, number], KnownFile>(
    `SELECT ${KNOWN} FROM files WHERE source = ? AND ino = ?`,
  );
  const byDoc = db.prepare<[string], KnownFile & { source: number }>(
    `SELECT ${KNOWN}, source FROM files WHERE doc_id = ?`,
  );
  const get = db.prepare<[number], KnownFile & { shapeId: number | null } & Omit<LedgerFile, "shape">>(
    `SELECT ${KNOWN}, hash, digest, title, label, extractor_version AS extractorVersion, shape AS shapeId, file_url AS fileUrl,
       metadata_hash AS metadataHash
     FROM files WHERE id = ?`,
  );
  const owns = db
    .prepare<[string, string], number>(
      "SELECT 1 FROM files WHERE doc_id = ? UNION ALL SELECT 1 FROM intents WHERE doc_id = ? LIMIT 1",
    )
    .pluck();
  const any = db.prepare<[number], number>("SELECT 1 FROM files WHERE source = ? LIMIT 1").pluck();

  return {
    all: function* (source) {
      const last = lastId.get() ?? 0;
      for (let from = 0; from < last; from += PAGE_ROWS) yield* page.all(from, from + PAGE_ROWS, source);
    },
    below: function* (source, paths) {
      yield* held.all(source);
      for (const path of paths) {
        const exact = at.get(source, path);
        if (exact !== undefined) yield exact;
        // "0" follows "/" in byte order: the range is everything below the folder.
        let from = `${path}/`;
        for (;;) {
          const rows = under.all(source, from, `${path}0`, PAGE_ROWS);
          yield* rows;
          const last = rows.at(-1);
          if (last === undefined || rows.length < PAGE_ROWS) break;
          from = `${last.path}\0`; // The next path there can be: no path of a disk holds a NUL.
        }
      }
    },
    living: (source, path) => at.get(source, path),
    byInode: (source, ino) => byInode.all(source, ino),
    byDoc: (docId) => byDoc.get(docId),
    get: (id) => {
      const row = get.get(id);
      if (row === undefined) return undefined;
      const { shapeId, ...file } = row;
      return { ...file, shape: shapes.get(shapeId) };
    },
    some: (source, limit) => some.all(source, limit),
    ownsDoc: (docId) => owns.get(docId, docId) !== undefined,
    isEmpty: (source) => any.get(source) === undefined,
  };
}

function prepareOutcomes(db: Sqlite, shapes: Shapes, { living }: Pick<FileRows, "living">): FileOutcomes {
  const columns =
    "source, path, doc_id, state, size_bytes, mtime_ms, ctime_ms, ino, rules_key, hash, digest, title, label, extractor_version, shape, file_url, metadata_hash, stored_label, found_digest, stored_ms";
  const insert = db.prepare(
    `INSERT INTO files (${columns}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  );
  const insertFree = db.prepare(
    `INSERT INTO files (${columns}) VALUES (?, ?, ?, 'agreed', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
     ON CONFLICT DO NOTHING`,
  );
  // The stored form of a text or title remains valid until it changes; the time, until something is sent.
  const agree = db.prepare(
    `UPDATE files SET stored_label = coalesce(?, CASE label WHEN ? THEN stored_label END),
       found_digest = coalesce(?, CASE digest WHEN ? THEN found_digest END),
       stored_ms = CASE WHEN ? THEN ? ELSE stored_ms END, doc_id = ?, state = 'agreed', size_bytes = ?, mtime_ms = ?, ctime_ms = ?, ino = ?, rules_key = ?,
       hash = ?, digest = ?, title = ?, label = ?, extractor_version = ?, shape = ?, file_url = ?, metadata_hash = ?, error_code = NULL,
       error_message = NULL, tries = 0, retry_at_ms = NULL WHERE id = ?`,
  );
  const warn = db.prepare("UPDATE files SET warning = ? WHERE doc_id = ?");
  const fail = db.prepare(
    `UPDATE files SET state = ?, size_bytes = ?, mtime_ms = ?, ctime_ms = ?, ino = ?, rules_key = ?, error_code = ?,
       error_message = ?, tries = tries + 1, retry_at_ms = ?, hash = CASE WHEN ? THEN hash ELSE '' END WHERE id = ?`,
  );
  const insertFailed = db.prepare(
    `INSERT INTO files (source, path, state, size_bytes, mtime_ms, ctime_ms, ino, rules_key, error_code, error_message,
       tries, retry_at_ms, hash, digest, title, label, extractor_version)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 1, ?, '', '', '', '', 0)`,
  );
  const tries = db.prepare<[number], number>("SELECT tries FROM files WHERE id = ?").pluck();

  return {
    insertFree: (source, docId, observed, stored) => {
      const values = [...observedColumns(observed, shapes), ...storedColumns(stored)];
      return insertFree.run(source, observed.entry.path, docId, ...values).changes === 1;
    },
    insert: (source, docId, state, observed, stored) => {
      const values = [...observedColumns(observed, shapes), ...storedColumns(stored)];
      insert.run(source, observed.entry.path, docId, state, ...values);
    },
    agree: (id, docId, observed, stored) => {
      const [label, digest, atMs] = storedColumns(stored);
      const learned = [label, observed.label, digest, observed.digest, stored === undefined ? 0 : 1, atMs];
      agree.run(...learned, docId, ...observedColumns(observed, shapes), id);
    },
    warn: (docId, warning) => void warn.run(warning ?? null, docId),
    trouble: (source, id, { entry, rulesKey, state, sure, code, message, retryAtMs }) => {
      const stat = [entry.sizeBytes, entry.mtimeMs, entry.ctimeMs, entry.ino, rulesKey, code, message];
      // A file without a row may have received one since: a list showed a resource of its own.
      id ??= living(source, entry.path)?.id;
      if (id === undefined) insertFailed.run(source, entry.path, state, ...stat, retryAtMs ?? null);
      else fail.run(state, ...stat, retryAtMs ?? null, sure ? 1 : 0, id);
    },
    tries: (id) => tries.get(id) ?? 0,
  };
}

function prepareChanges(db: Sqlite, shapes: Shapes): FileChanges {
  const setState = db.prepare("UPDATE files SET state = ? WHERE id = ?");
  const hold = db.prepare(
    `UPDATE files SET rules_key = CASE state WHEN 'agreed' THEN rules_key ELSE 0 END,
       hash = CASE state WHEN 'unsure' THEN '' ELSE hash END, state = 'held' WHERE id = ?`,
  );
  const distrust = db.prepare(
    `UPDATE files SET hash = CASE WHEN state IN ('agreed', 'unsure') THEN hash ELSE '' END,
       rules_key = CASE WHEN state IN ('held', 'doomed') THEN 0 ELSE rules_key END,
       state = CASE state WHEN 'agreed' THEN 'unsure' ELSE state END WHERE id = ?`,
  );
  // Without a shape: no update can give it the right one.
  const lose = db.prepare(
    "UPDATE files SET state = 'unsure', shape = NULL, hash = '', rules_key = 0 WHERE id = ?",
  );
  const exchange = db.prepare(
    `UPDATE files SET doc_id = ?, shape = ?, file_url = ?, metadata_hash = ?, rules_key = ?, warning = NULL, stored_label = ?,
       found_digest = ?, stored_ms = ? WHERE id = ?`,
  );
  const relabel = db.prepare("UPDATE files SET title = ?, label = ?, rules_key = 0 WHERE id = ?");
  // The index contains only mails.
  const textMails = `lower(substr(path, -4)) = '.eml' AND state = 'agreed' AND shape IN (SELECT id FROM shapes WHERE kind = 'content')`;
  const hasTextMails = db
    .prepare<[], number>(`SELECT EXISTS (SELECT 1 FROM files WHERE ${textMails})`)
    .pluck();
  const rereadTextMails = db.prepare(`UPDATE files SET rules_key = 0 WHERE ${textMails}`);
  const repath = db.prepare(
    "UPDATE files SET path = ?, rules_key = 0, state = CASE WHEN state = 'held' THEN 'agreed' ELSE state END WHERE id = ?",
  );
  const taken =
    "source = (SELECT source FROM files WHERE id = ?) AND path = ? AND state NOT IN ('held', 'doomed')";
  const clear = db.prepare(`DELETE FROM files WHERE ${taken} AND doc_id IS NULL`);
  const doom = db.prepare(`UPDATE files SET state = 'doomed' WHERE ${taken}`);
  const displace = (id: number, path: RelativePath): void => {
    clear.run(id, path);
    doom.run(id, path);
  };
  const remove = db.prepare("DELETE FROM files WHERE id = ?");
  const forget = db.prepare("DELETE FROM files WHERE id = ? AND doc_id IS NULL");

  return {
    setState: (id, state) => void setState.run(state, id),
    hold: (id) => void hold.run(id),
    distrust: (id) => void distrust.run(id),
    lose: (id) => void lose.run(id),
    exchange: (id, docId, { shape, fileUrl, metadataHash, rulesKey }, stored) => {
      const facts = [docId, shapes.idOf(shape), fileUrl ?? null, metadataHash ?? null, rulesKey];
      exchange.run(...facts, ...storedColumns(stored), id);
    },
    relabel: (id, title, label) => void relabel.run(title, label, id),
    hasTextMails: () => hasTextMails.get() === 1,
    rereadTextMails: () => void rereadTextMails.run(),
    restore: (id, path) => {
      displace(id, path);
      setState.run("agreed", id);
    },
    repath: (moves) => {
      // First out of the way, then to the target: within a swap or a ring each path is taken until its owner has left.
      // No path on a disk contains a NUL.
      for (const { id } of moves) repath.run(`\0${id}`, id);
      for (const { id, to } of moves) {
        displace(id, to);
        repath.run(to, id);
      }
    },
    remove: (id) => void remove.run(id),
    forget: (id) => void forget.run(id),
  };
}

/** A condition for paths at or below the parameter. "0" follows "/" in byte order: the range is everything below it. */
const isBelow = (path: string): string =>
  `(@below IS NULL OR ${path} = @below OR (${path} >= @below || '/' AND ${path} < @below || '0'))`;
const isListed = (table: string): string =>
  `active = 1 AND (@source IS NULL OR sources.id = @source) AND ${isBelow(`${table}.path`)}`;

function prepareTroubles(db: Sqlite): FileTroubles {
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

/** Returns the values of the columns from size_bytes to metadata_hash, in the order of the statements. */
export function observedColumns(observed: Observed, shapes: Shapes): readonly (string | number | null)[] {
  const { entry } = observed;
  return [
    entry.sizeBytes,
    entry.mtimeMs,
    entry.ctimeMs,
    entry.ino,
    observed.rulesKey,
    observed.hash,
    observed.digest,
    observed.title,
    observed.label,
    observed.extractorVersion,
    shapes.idOf(observed.shape),
    observed.fileUrl ?? null,
    observed.metadataHash ?? null,
  ];
}

function storedColumns({ label, digest, atMs }: Stored = {}): readonly [
  string | null,
  string | null,
  number | null,
] {
  return [label ?? null, digest ?? null, atMs ?? null];
}

/** Shapes by their number in the ledger. There are few: a source has one per kind and rule. */
export interface Shapes {
  idOf(shape: Shape): number;
  get(id: number | null): Shape;
}

const NO_SHAPE: Shape = {
  kind: "content",
  tier: "fastest",
  ownerId: "",
  settings: { strategy: "recursive", chunkSize: 0, chunkOverlap: 0 },
};

type ShapeRow = Omit<Shape, "settings"> & Shape["settings"];

/** Prepares the statements over shapes. */
export function openShapes(db: Sqlite): Shapes {
  const find = db
    .prepare<(string | number)[], number>(
      "SELECT id FROM shapes WHERE kind = ? AND tier = ? AND owner_id = ? AND strategy = ? AND chunk_chars = ? AND overlap_chars = ?",
    )
    .pluck();
  const add = db.prepare(
    "INSERT INTO shapes (kind, tier, owner_id, strategy, chunk_chars, overlap_chars) VALUES (?, ?, ?, ?, ?, ?)",
  );
  const get = db.prepare<[number], ShapeRow>(
    `SELECT kind, tier, owner_id AS ownerId, strategy, chunk_chars AS chunkSize, overlap_chars AS chunkOverlap
     FROM shapes WHERE id = ?`,
  );
  // Every write of a row needs its shape. A shape never changes or disappears, and a ledger writes nothing more after a
  // rollback, so the cache stays valid.
  const ids = new Map<string, number>();
  const found = new Map<number, Shape>();
  return {
    idOf: ({ kind, tier, ownerId, settings: { strategy, chunkSize, chunkOverlap } }) => {
      const name = `${kind} ${tier} ${strategy} ${chunkSize} ${chunkOverlap} ${ownerId}`;
      let id = ids.get(name);
      if (id !== undefined) return id;
      const values = [kind, tier, ownerId, strategy, chunkSize, chunkOverlap];
      id = find.get(...values) ?? Number(add.run(...values).lastInsertRowid);
      ids.set(name, id);
      return id;
    },
    get: (id) => {
      if (id === null) return NO_SHAPE;
      const known = found.get(id);
      if (known !== undefined) return known;
      const row = get.get(id);
      if (row === undefined) return NO_SHAPE;
      const { kind, tier, ownerId, ...settings } = row;
      const shape = { kind, tier, ownerId, settings };
      found.set(id, shape);
      return shape;
    },
  };
}
