import type { Tier } from "../../../wire/primitives.ts";
import type { HandOver } from "../../plan/hand-overs.ts";
import type { RootIdentity } from "../../plan/model.ts";
import type { Sqlite } from "../database/open.ts";
import { statementsOf } from "../database/statements.ts";

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
  /** Nothing is sent for it until a person resumes it. */
  readonly paused: boolean;
  readonly agreed: number;
  readonly unsure: number;
  readonly failed: number;
  readonly skipped: number;
  readonly parked: number;
  /** Deletes that wait for a person. */
  readonly held: number;
  /** Files that are gone and whose documents stay, because the source deletes nothing. */
  readonly kept: number;
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
  /** Deletes that the service refuses. */
  readonly deletesRefused: number;
  /** Files in agreement that the service read only in part. */
  readonly readInPart: number;
  /** The service's losses of this source, because of which nothing is sent for it; null without any. */
  readonly lost: string | null;
  /** What kind of hold `lost` is; null without one. */
  readonly lostKind: HoldKind | null;
}

/**
 * Why a source is compared before anything is sent: the service lost most of its documents; its answers are unclear, and the
 * daemon asks again by itself; or whose documents they are is for a person to say.
 */
export type HoldKind = "lost" | "unclear" | "identity";

/** A source that left the configuration. */
export interface RemovedSource extends SourceRow {
  /** Number of resources that it still has at the service. */
  readonly resources: number;
}

/**
 * Why a source has no folder to agree to: it is missing, it cannot be read, or the unit `haltUnit` does not show it.
 */
export type HaltCode = "missing" | "unreadable" | "not-shown";

type Row = Omit<SourceRow, "root" | "haltRoot" | "approved" | "active" | "paused" | "compared" | "kept"> & {
  keeps: number;
  dev: number | null;
  ino: number | null;
  haltDev: number | null;
  haltIno: number | null;
  approved: number;
  active: number;
  paused: number;
  compared: number;
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
    kept: 0,
    deletesRefused: 0,
    readInPart: 0,
  };
  const work = { backlog: 0, backlogAgreed: 0, found: 0, compared: false, unreadable: 0 };
  const words = { halted: null, haltCode: null, haltUnit: null, holdReason: null };
  const roots = {
    root: undefined,
    haltRoot: undefined,
    haltFiles: 0,
    approved: false,
    active: true,
    paused: false,
  };
  return { id, path, ownerId, tier, ...roots, ...files, ...work, ...words, lost: null, lostKind: null };
}

/**
 * Whether a loss waits for a person. One that was agreed to while the folder is another one is read at the next comparison,
 * which waits for a word on the folder.
 */
export const OPEN_LOSS = "loss IS NOT NULL AND (loss_agreed = 0 OR halted IS NULL)";
/** The states of files that a source's row counts, by column, as the triggers of `files` do. */
export const COUNTED_STATES = {
  agreed: "'agreed'",
  unsure: "'unsure'",
  failed: "'failed'",
  skipped: "'skipped'",
  parked: "'parked'",
  held: "'held', 'doomed'",
} as const;
const COLUMNS = `id, path, owner_id AS ownerId, tier, root_dev AS dev, root_ino AS ino, halted, halt_code AS haltCode, halt_unit AS haltUnit, hold_reason AS holdReason,
  approved, active, paused, keeps, halt_dev AS haltDev, halt_ino AS haltIno, halt_files AS haltFiles, agreed, unsure, failed, skipped, parked, held, backlog, backlog_agreed AS backlogAgreed, found, compared, unreadable,
  (SELECT count(*) FROM intents WHERE intents.source = sources.id AND kind = 'delete' AND error_message IS NOT NULL)
    AS deletesRefused,
  (SELECT count(*) FROM files WHERE files.source = sources.id AND warning IS NOT NULL AND files.state = 'agreed')
    AS readInPart, CASE WHEN ${OPEN_LOSS} THEN loss END AS lost, CASE WHEN ${OPEN_LOSS} THEN loss_kind END AS lostKind`;

/** Prepares the statements over rows of sources. */
export function prepareRows(db: Sqlite) {
  const { run, change, get, all, has } = statementsOf(db);
  const upsert = get<[path: string, ownerId: string, tier: string, keeps: number], Row>(
    `INSERT INTO sources (path, owner_id, tier, keeps, active) VALUES (?, ?, ?, ?, 1)
     -- One that is put back into the configuration goes on as if nothing had happened: a word on its end is void.
     ON CONFLICT (path) DO UPDATE SET owner_id = excluded.owner_id, tier = excluded.tier, keeps = excluded.keeps,
       approved = CASE active WHEN 1 THEN approved ELSE 0 END, active = 1 RETURNING ${COLUMNS}`,
  );
  const byId = get<[id: number], Row>(`SELECT ${COLUMNS} FROM sources WHERE id = ?`);
  const byPath = get<[path: string], Row>(`SELECT ${COLUMNS} FROM sources WHERE path = ?`);
  const active = all<[], Row>(`SELECT ${COLUMNS} FROM sources WHERE active = 1 ORDER BY id`);
  const removed = all<[], Row & { resources: number; creates: number }>(
    `SELECT ${COLUMNS}, agreed
       + (SELECT count(*) FROM files WHERE source = sources.id AND state <> 'agreed' AND doc_id IS NOT NULL)
       + (SELECT count(*) FROM intents WHERE source = sources.id AND kind = 'delete') AS resources,
       (SELECT count(*) FROM intents WHERE source = sources.id AND kind = 'create') AS creates
     FROM sources WHERE active = 0 ORDER BY id`,
  );
  const hasFiles = `(EXISTS (SELECT 1 FROM files WHERE source = sources.id)
    OR EXISTS (SELECT 1 FROM intents WHERE source = sources.id))`;
  const withFiles = all<[], Row>(`SELECT ${COLUMNS} FROM sources WHERE ${hasFiles} ORDER BY id`);
  const folders = all<[], { id: number; path: string }>("SELECT id, path FROM sources");
  const repath = run<[path: string, id: number]>("UPDATE sources SET path = ? WHERE id = ?");
  // "0" follows "/" in byte order.
  const moveTo = (table: string, more = ""): string =>
    `UPDATE OR IGNORE ${table} SET source = @source, ${more}
       path = @to || substr(path, CASE @below WHEN '' THEN 1 ELSE length(@below) + 2 END)
     WHERE source = @from AND (@below = '' OR path >= @below || '/' AND path < @below || '0')`;
  const moveFiles = change<[HandOver]>(moveTo("files", "rules_key = 0,"));
  const moveMounts = run<[HandOver]>(moveTo("mounts"));
  const countOf = (states: string): string =>
    `(SELECT count(*) FROM files WHERE source = sources.id AND state IN (${states}))`;
  const count = run<[from: number, to: number]>(
    `UPDATE sources SET ${Object.entries(COUNTED_STATES)
      .map(([column, states]) => `${column} = ${countOf(states)}`)
      .join(", ")} WHERE id IN (?, ?)`,
  );
  const keepActive = run<[ids: string]>("UPDATE sources SET active = id IN (SELECT value FROM json_each(?))");

  return {
    /** Finds or creates the row of a folder. `keeps`: documents stay when their files are gone. */
    open: (path: string, ownerId: string, tier: Tier, keeps: boolean = false): SourceRow =>
      known(upsert(path, ownerId, tier, Number(keeps))),
    /** Returns what `open` would, without writing; undefined for a folder without a row. */
    peek: (path: string, ownerId: string, tier: Tier): SourceRow | undefined => {
      const row = byPath(path);
      return row && sourceOf({ ...row, ownerId, tier });
    },
    get: (id: number): SourceRow => known(byId(id)),
    /** Returns the rows of all configured sources. */
    active: (): SourceRow[] => active().map(sourceOf),
    /** Returns sources that left the configuration and still have resources or creates in flight. */
    removed: (): RemovedSource[] =>
      removed()
        .filter(({ resources, creates }) => resources + creates > 0)
        .map(({ creates: _open, resources, ...row }) => Object.assign(sourceOf(row), { resources })),
    /** Returns the folders of all sources by number, including removed ones. */
    folders: (): ReadonlyMap<number, string> => new Map(folders().map(({ id, path }) => [id, path])),
    /** Returns sources with files or intents, whether configured or not. */
    withFiles: (): SourceRow[] => withFiles().map(sourceOf),
    /** Reports whether a source has neither files nor intents. */
    isEmpty: has<[id: number]>(`SELECT 1 FROM sources WHERE id = ? AND NOT ${hasFiles}`),
    /** Gives a source's row another folder. The row that has that folder, if any, receives the old one. */
    repath: (id: number, path: string): void => {
      const other = byPath(path);
      const before = known(byId(id)).path;
      // Out of the way first, because two rows cannot share a folder. No path on a disk contains a NUL.
      if (other !== undefined) repath(`\0${other.id}`, other.id);
      repath(path, id);
      if (other !== undefined) repath(before, other.id);
    },
    /** Gives rows and mounts to another source, except those whose new path is taken. Open requests stay where they were sent. */
    handOver: ({ from, below, source, to }: HandOver): void => {
      const values = { from, below, source, to: to === "" ? "" : `${to}/` };
      moveMounts(values);
      if (moveFiles(values) > 0) count(from, source);
    },
    /** Marks these sources as the configured ones. Others keep their rows; nothing is deleted for them. */
    keepActive: (ids: readonly number[]): void => keepActive(JSON.stringify(ids)),
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
  paused,
  compared,
  keeps,
  held,
  ...row
}: Row): SourceRow {
  return {
    ...row,
    held: keeps === 0 ? held : 0,
    kept: keeps === 0 ? 0 : held,
    compared: compared !== 0,
    approved: approved !== 0,
    active: active !== 0,
    paused: paused !== 0,
    root: identityOf(dev, ino),
    haltRoot: identityOf(haltDev, haltIno),
  };
}

function identityOf(dev: number | null, ino: number | null): RootIdentity | undefined {
  return dev === null || ino === null ? undefined : { dev, ino };
}
