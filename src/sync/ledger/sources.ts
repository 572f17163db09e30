import type { Tier } from "../../wire/primitives.ts";
import type { RootIdentity } from "../plan/model.ts";
import { openMeta } from "./meta.ts";
import type { Sqlite } from "./open.ts";

/** A source in the ledger, with its counts. */
export interface SourceRow {
  readonly id: number;
  readonly path: string;
  readonly ownerId: string;
  readonly tier: Tier;
  /** Undefined before the first complete pass. */
  readonly root: RootIdentity | undefined;
  /** Why nothing is sent for this source. */
  readonly halted: string | null;
  /** Null also for another folder, to which a person may agree. */
  readonly haltCode: HaltCode | null;
  readonly haltUnit: string | null;
  /** Why deletes are held. */
  readonly holdReason: string | null;
  /** The other root that halts the source; undefined while none does, and while its folder is missing. */
  readonly haltRoot: RootIdentity | undefined;
  /** Number of files missing from that root. */
  readonly haltFiles: number;
  /**
   * A person agreed to what halts the source, or, for a source that left the configuration, to the delete of all its
   * resources.
   */
  readonly approved: boolean;
  /** In the configuration. */
  readonly active: boolean;
  readonly agreed: number;
  readonly unsure: number;
  readonly failed: number;
  readonly skipped: number;
  readonly parked: number;
  readonly held: number;
  /** Files planned or in flight, and how many of them have a row in agreement (an older version of theirs). */
  readonly backlog: number;
  readonly backlogAgreed: number;
  /**
   * Number of files present, with or without a row, when the backlog was recorded. A file acknowledged later moves to
   * the agreed ones and is not counted twice.
   */
  readonly found: number;
  /** Whether the last process that worked on it compared the whole folder, so that all pending files were counted. */
  readonly compared: boolean;
  /** Number of folders and files that the last complete scan could not read. */
  readonly unreadable: number;
  /** Why some changes are found late, while a daemon runs. */
  readonly degraded: string | null;
  /** Deletes that the service refuses. */
  readonly deletesRefused: number;
  /** Files in agreement that the service read only in part. */
  readonly readInPart: number;
  /** What the service has lost of this source, so that nothing is sent for it; null when nothing. */
  readonly lost: string | null;
  /** Nothing is known to be lost: the service's answers are unclear, and the daemon asks again by itself. */
  readonly isUnclear: boolean;
}

/** A source that left the configuration. */
export interface RemovedSource extends SourceRow {
  /** Number of resources that it still has at the service. */
  readonly resources: number;
}

/** The rows of sources, and the ids of collections. Changes are plain statements: run them inside a group commit. */
export interface Sources extends SourceRows, SourceStates, SourceDeletes, ServiceFacts {}

/** The folders and which of them are configured. */
interface SourceRows {
  /** Finds or creates the row of a folder. */
  open(path: string, ownerId: string, tier: Tier): SourceRow;
  /** Returns what `open` would, without writing; undefined for a folder without a row. */
  peek(path: string, ownerId: string, tier: Tier): SourceRow | undefined;
  get(id: number): SourceRow;
  /** Returns the rows of all configured sources. */
  active(): SourceRow[];
  /** Returns sources that left the configuration and still have resources or creates in flight. */
  removed(): RemovedSource[];
  /** Returns the folders of all sources by number, including removed ones. */
  folders(): ReadonlyMap<number, string>;
  /** Returns sources with files or intents, whether configured or not. */
  withFiles(): SourceRow[];
  /** Reports whether a source has neither files nor intents. */
  isEmpty(id: number): boolean;
  /** Gives a source's row another folder. The row that has that folder, if any, receives the old one. */
  repath(id: number, path: string): void;
  /** Marks these sources as the configured ones. Others keep their rows; nothing is deleted for them. */
  keepActive(ids: readonly number[]): void;
}

/** What a row records of its source's last checks. */
interface SourceStates {
  setRoot(id: number, root: RootIdentity): void;
  /** `halted` with `root` and `files` describes what halts the source. Without a root its folder is missing. */
  setHold(id: number, hold: Hold): void;
  setBacklog(id: number, backlog: number, backlogAgreed: number): void;
  setCompared(id: number, compared: boolean): void;
  /** Returns the Unix time before which every change was acknowledged or is counted in the row; undefined: unknown. */
  asOfMs(id: number): number | undefined;
  setAsOf(id: number, asOfMs: number | null): void;
  setUnreadable(id: number, count: number): void;
  setDegraded(id: number, reason: string | null): void;
}

/** Deletes of a source and a person's agreement to them. */
interface SourceDeletes {
  /**
   * Returns how many files have a resource, in any state: failed, parked and held ones count, those whose delete a
   * person agreed to do not.
   */
  withResource(id: number): number;
  /** Returns a fingerprint of the rows that are held and not agreed to. It changes when any joins or leaves. */
  heldMark(id: number): string;
  /** Returns how many deletes began after a time. */
  deletedSince(id: number, sinceMs: number): number;
  /**
   * Counts deletes that begin. Forgets those from before `sinceMs`, and those from the future of a clock that was
   * wrong.
   */
  countDeletes(id: number, atMs: number, files: number, sinceMs: number): void;
  /**
   * Records that a person agrees to the held deletes and to the other root that halts the source, if there is one.
   * Nobody can agree to a missing folder, because what will replace it is unknown.
   */
  approve(id: number): void;
  approvalUsed(id: number): void;
}

/** What the service supplied. */
interface ServiceFacts {
  collectionId(tier: Tier): string | undefined;
  setCollectionId(tier: Tier, collectionId: string): void;
  /** Whether the service last reported that it reads the PDFs and images of uploaded mails. */
  readsMails(): boolean;
  setReadsMails(reads: boolean): void;
  /** Whether the service last reported that it takes metadata. */
  takesMetadata(): boolean;
  setTakesMetadata(takes: boolean): void;
  /** When it last reported that or the contrary; undefined: never to this ledger. */
  metadataAskedMs(): number | undefined;
  setMetadataAskedMs(atMs: number): void;
}

/**
 * Why a source has no folder to agree to: it is missing, it cannot be read, or the unit `haltUnit` does not show it.
 */
export type HaltCode = "missing" | "unreadable" | "not-shown";

/** Why nothing is sent for a source, and why deletes are held. */
export interface Hold {
  readonly halted: string | null;
  readonly code?: HaltCode;
  readonly unit?: string | undefined;
  readonly reason: string | null;
  readonly root?: RootIdentity | undefined;
  readonly files?: number;
}

type Row = Omit<SourceRow, "root" | "haltRoot" | "approved" | "active" | "compared" | "isUnclear"> & {
  dev: number | null;
  ino: number | null;
  haltDev: number | null;
  haltIno: number | null;
  approved: number;
  active: number;
  compared: number;
  isUnclear: number | null;
};

/** Returns the row of a folder that was never synced, as it would be before its first pass. */
export function freshRow(id: number, path: string, ownerId: string, tier: Tier): SourceRow {
  const files = {
    agreed: 0,
    unsure: 0,
    failed: 0,
    skipped: 0,
    parked: 0,
    held: 0,
    deletesRefused: 0,
    readInPart: 0,
  };
  const work = { backlog: 0, backlogAgreed: 0, found: 0, compared: false, unreadable: 0 };
  const words = { halted: null, haltCode: null, haltUnit: null, holdReason: null, degraded: null };
  const roots = { root: undefined, haltRoot: undefined, haltFiles: 0, approved: false, active: true };
  return { id, path, ownerId, tier, ...roots, ...files, ...work, ...words, lost: null, isUnclear: false };
}

/** Prepares the statements over sources. */
export function openSources(db: Sqlite): Sources {
  return { ...prepareRows(db), ...prepareStates(db), ...prepareDeletes(db), ...prepareFacts(db) };
}

/**
 * A loss that waits for a person. One that was agreed to while the folder is another one is read at the next comparison,
 * which waits for a word on the folder.
 */
const OPEN_LOSS = "losses.source = sources.id AND (losses.agreed = 0 OR sources.halted IS NULL)";
const COLUMNS = `id, path, owner_id AS ownerId, tier, root_dev AS dev, root_ino AS ino, halted, halt_code AS haltCode, halt_unit AS haltUnit, hold_reason AS holdReason,
  approved, active, halt_dev AS haltDev, halt_ino AS haltIno, halt_files AS haltFiles, agreed, unsure, failed, skipped, parked, held, backlog, backlog_agreed AS backlogAgreed, found, compared, unreadable, degraded,
  (SELECT count(*) FROM intents WHERE intents.source = sources.id AND kind = 'delete' AND error_message IS NOT NULL)
    AS deletesRefused,
  (SELECT count(*) FROM files WHERE files.source = sources.id AND warning IS NOT NULL AND files.state = 'agreed')
    AS readInPart, (SELECT reason FROM losses WHERE ${OPEN_LOSS}) AS lost,
  (SELECT is_unclear FROM losses WHERE ${OPEN_LOSS}) AS isUnclear`;

function prepareRows(db: Sqlite): SourceRows {
  const upsert = db.prepare<[string, string, string], Row>(
    `INSERT INTO sources (path, owner_id, tier, active) VALUES (?, ?, ?, 1)
     -- One that is put back into the configuration goes on as if nothing had happened: a word on its end is void.
     ON CONFLICT (path) DO UPDATE SET owner_id = excluded.owner_id, tier = excluded.tier,
       approved = CASE active WHEN 1 THEN approved ELSE 0 END, active = 1 RETURNING ${COLUMNS}`,
  );
  const get = db.prepare<[number], Row>(`SELECT ${COLUMNS} FROM sources WHERE id = ?`);
  const peek = db.prepare<[string], Row>(`SELECT ${COLUMNS} FROM sources WHERE path = ?`);
  const active = db.prepare<[], Row>(`SELECT ${COLUMNS} FROM sources WHERE active = 1 ORDER BY id`);
  const removed = db.prepare<[], Row & { resources: number; creates: number }>(
    `SELECT ${COLUMNS}, agreed
       + (SELECT count(*) FROM files WHERE source = sources.id AND state <> 'agreed' AND doc_id IS NOT NULL)
       + (SELECT count(*) FROM intents WHERE source = sources.id AND kind = 'delete') AS resources,
       (SELECT count(*) FROM intents WHERE source = sources.id AND kind = 'create') AS creates
     FROM sources WHERE active = 0 ORDER BY id`,
  );
  const hasFiles = `(EXISTS (SELECT 1 FROM files WHERE source = sources.id)
    OR EXISTS (SELECT 1 FROM intents WHERE source = sources.id))`;
  const withFiles = db.prepare<[], Row>(`SELECT ${COLUMNS} FROM sources WHERE ${hasFiles} ORDER BY id`);
  const folders = db.prepare<[], { id: number; path: string }>("SELECT id, path FROM sources");
  const isEmpty = db
    .prepare<[number], number>(`SELECT 1 FROM sources WHERE id = ? AND NOT ${hasFiles}`)
    .pluck();
  const repath = db.prepare("UPDATE sources SET path = ? WHERE id = ?");
  const keepActive = db.prepare("UPDATE sources SET active = id IN (SELECT value FROM json_each(?))");

  return {
    open: (path, ownerId, tier) => known(upsert.get(path, ownerId, tier)),
    peek: (path, ownerId, tier) => {
      const row = peek.get(path);
      return row && sourceOf({ ...row, ownerId, tier });
    },
    get: (id) => known(get.get(id)),
    active: () => active.all().map(sourceOf),
    removed: () =>
      removed
        .all()
        .filter(({ resources, creates }) => resources + creates > 0)
        .map(({ creates: _open, resources, ...row }) => Object.assign(sourceOf(row), { resources })),
    folders: () => new Map(folders.all().map(({ id, path }) => [id, path])),
    withFiles: () => withFiles.all().map(sourceOf),
    isEmpty: (id) => isEmpty.get(id) !== undefined,
    repath: (id, path) => {
      const other = peek.get(path);
      const before = known(get.get(id)).path;
      // Out of the way first, because two rows cannot share a folder. No path on a disk contains a NUL.
      if (other !== undefined) repath.run(`\0${other.id}`, other.id);
      repath.run(path, id);
      if (other !== undefined) repath.run(before, other.id);
    },
    keepActive: (ids) => void keepActive.run(JSON.stringify(ids)),
  };
}

function prepareStates(db: Sqlite): SourceStates {
  const setRoot = db.prepare("UPDATE sources SET root_dev = ?, root_ino = ? WHERE id = ?");
  const setHold = db.prepare(
    `UPDATE sources SET halted = ?, halt_code = ?, halt_unit = ?, hold_reason = ?, halt_dev = ?, halt_ino = ?, halt_files = ?
     WHERE id = ?`,
  );
  const setBacklog = db.prepare(
    `UPDATE sources SET backlog = @backlog, backlog_agreed = @agreed,
       found = agreed + failed + parked + unsure - @agreed + @backlog WHERE id = @id`,
  );
  const setCompared = db.prepare("UPDATE sources SET compared = ? WHERE id = ?");
  const setUnreadable = db.prepare("UPDATE sources SET unreadable = ? WHERE id = ?");
  const setDegraded = db.prepare("UPDATE sources SET degraded = ? WHERE id = ?");

  return {
    setRoot: (id, { dev, ino }) => void setRoot.run(dev, ino, id),
    setHold: (id, { halted, code, unit, reason, root, files }) => {
      const identity = [root?.dev ?? null, root?.ino ?? null];
      setHold.run(halted, code ?? null, unit ?? null, reason, ...identity, files ?? 0, id);
    },
    setBacklog: (id, backlog, backlogAgreed) => void setBacklog.run({ id, backlog, agreed: backlogAgreed }),
    setCompared: (id, compared) => void setCompared.run(Number(compared), id),
    // Prepared when it is asked for: lookups read ledgers of the version before this column, too.
    asOfMs: (id) =>
      db.prepare<[number], number | null>("SELECT as_of_ms FROM sources WHERE id = ?").pluck().get(id) ??
      undefined,
    setAsOf: (id, asOfMs) => void db.prepare("UPDATE sources SET as_of_ms = ? WHERE id = ?").run(asOfMs, id),
    setUnreadable: (id, count) => void setUnreadable.run(count, id),
    setDegraded: (id, reason) => void setDegraded.run(reason, id),
  };
}

function prepareDeletes(db: Sqlite): SourceDeletes {
  const doom = db.prepare(
    "UPDATE files SET state = 'doomed' WHERE source = ? AND state = 'held' AND state <> 'agreed'",
  );
  const setApproved = db.prepare(
    "UPDATE sources SET approved = 1 WHERE id = ? AND (active = 0 OR (halted IS NOT NULL AND halt_dev IS NOT NULL))",
  );
  const agreeToLoss = db.prepare(
    // Nothing of a source that left the configuration is sent again: an approval of it concerns its removal.
    `UPDATE losses SET agreed = 1 WHERE source = ?
       AND EXISTS (SELECT 1 FROM sources WHERE ${OPEN_LOSS} AND active = 1)`,
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
    withResource: (id) => withResource.get(id) ?? 0,
    heldMark: (id) => heldMark.get(id) ?? "",
    deletedSince: (id, sinceMs) => deletedSince.get(id, sinceMs) ?? 0,
    countDeletes: (id, atMs, files, sinceMs) => {
      forgetDeletes.run(id, sinceMs, atMs);
      countDeletes.run(id, atMs, files);
    },
    approve: (id) => {
      // While nothing is sent because the service lost much, that is what a person sees and agrees to.
      if (agreeToLoss.run(id).changes > 0) return;
      doom.run(id);
      setApproved.run(id);
    },
    approvalUsed: (id) => void approvalUsed.run(id),
  };
}

function prepareFacts(db: Sqlite): ServiceFacts {
  const meta = openMeta(db);
  const collection = db
    .prepare<[string], string>("SELECT collection_id FROM collections WHERE tier = ?")
    .pluck();
  const setCollection = db.prepare(
    `INSERT INTO collections (tier, collection_id) VALUES (?, ?)
     ON CONFLICT (tier) DO UPDATE SET collection_id = excluded.collection_id`,
  );

  return {
    collectionId: (tier) => collection.get(tier),
    setCollectionId: (tier, id) => void setCollection.run(tier, id),
    readsMails: () => meta.get("reads_mails") === "1",
    setReadsMails: (reads) => meta.set("reads_mails", reads ? "1" : "0"),
    takesMetadata: () => meta.get("takes_metadata") === "1",
    setTakesMetadata: (takes) => meta.set("takes_metadata", takes ? "1" : "0"),
    metadataAskedMs: () => meta.number("metadata_asked_ms"),
    setMetadataAskedMs: (atMs) => meta.set("metadata_asked_ms", String(atMs)),
  };
}

function known(row: Row | undefined): SourceRow {
  if (row === undefined) throw new Error("the ledger lost a source's row");
  return sourceOf(row);
}

function sourceOf({
  dev,
  ino,
  haltDev,
  haltIno,
  approved,
  active,
  compared,
  isUnclear,
  ...row
}: Row): SourceRow {
  return {
    ...row,
    compared: compared !== 0,
    isUnclear: isUnclear === 1,
    approved: approved !== 0,
    active: active !== 0,
    root: identityOf(dev, ino),
    haltRoot: identityOf(haltDev, haltIno),
  };
}

function identityOf(dev: number | null, ino: number | null): RootIdentity | undefined {
  return dev === null || ino === null ? undefined : { dev, ino };
}
