import type { Tier } from "../../wire/primitives.ts";
import type { RootIdentity } from "../plan/model.ts";
import type { Sqlite } from "./open.ts";

/** A source as the ledger knows it, with its counts. */
export interface SourceRow {
  readonly id: number;
  readonly path: string;
  readonly ownerId: string;
  readonly tier: Tier;
  /** Undefined before the first whole pass. */
  readonly root: RootIdentity | undefined;
  /** Why nothing is sent for this source. */
  readonly halted: string | null;
  /** Why deletes are held. */
  readonly holdReason: string | null;
  /** A person agreed to what the brakes held as a whole. */
  readonly approved: boolean;
  readonly agreed: number;
  readonly unsure: number;
  readonly failed: number;
  readonly skipped: number;
  readonly parked: number;
  readonly held: number;
  /** Files planned or on their way, and how many of them have a row in agreement (an older version of theirs). */
  readonly backlog: number;
  readonly backlogAgreed: number;
  /** Folders and files that the last whole scan could not look at. */
  readonly unreadable: number;
  /** Why some changes are found late, while a daemon runs. */
  readonly degraded: string | null;
  /** Deletes that the service will not do. */
  readonly deletesRefused: number;
}

/** The rows of sources, and the ids of collections. Changes are plain statements: run them inside a group commit. */
export interface Sources {
  /** Finds or makes the row of a folder. */
  open(path: string, ownerId: string, tier: Tier): SourceRow;
  /** What `open` would find or make, with nothing written; undefined for a folder without a row. */
  peek(path: string, ownerId: string, tier: Tier): SourceRow | undefined;
  get(id: number): SourceRow;
  /** All rows of sources in the configuration. */
  active(): SourceRow[];
  /** Sources that are no longer in the configuration keep their rows; nothing is deleted for them. */
  keepActive(ids: readonly number[]): void;
  setRoot(id: number, root: RootIdentity): void;
  setHold(id: number, hold: { halted: string | null; reason: string | null }): void;
  setBacklog(id: number, backlog: number, backlogAgreed: number): void;
  setUnreadable(id: number, count: number): void;
  setDegraded(id: number, reason: string | null): void;
  /** A person agrees to the deletes held now, and to the root as it is. */
  approve(id: number): void;
  approvalUsed(id: number): void;
  collectionId(tier: Tier): string | undefined;
  setCollectionId(tier: Tier, collectionId: string): void;
}

type Row = Omit<SourceRow, "root" | "approved"> & {
  dev: number | null;
  ino: number | null;
  approved: number;
};

/** The row of a folder that was never synced, as it would be before its first pass. */
export function freshRow(id: number, path: string, ownerId: string, tier: Tier): SourceRow {
  const files = { agreed: 0, unsure: 0, failed: 0, skipped: 0, parked: 0, held: 0, deletesRefused: 0 };
  const work = { backlog: 0, backlogAgreed: 0, unreadable: 0 };
  const words = { halted: null, holdReason: null, degraded: null };
  return { id, path, ownerId, tier, root: undefined, approved: false, ...files, ...work, ...words };
}

/** Prepares the statements over sources. */
export function openSources(db: Sqlite): Sources {
  const columns = `id, path, owner_id AS ownerId, tier, root_dev AS dev, root_ino AS ino, halted, hold_reason AS holdReason,
    approved, agreed, unsure, failed, skipped, parked, held, backlog, backlog_agreed AS backlogAgreed, unreadable, degraded,
    (SELECT count(*) FROM intents WHERE intents.source = sources.id AND kind = 'delete' AND error_message IS NOT NULL)
      AS deletesRefused`;
  const upsert = db.prepare<[string, string, string], Row>(
    `INSERT INTO sources (path, owner_id, tier, active) VALUES (?, ?, ?, 1)
     ON CONFLICT (path) DO UPDATE SET owner_id = excluded.owner_id, tier = excluded.tier, active = 1 RETURNING ${columns}`,
  );
  const get = db.prepare<[number], Row>(`SELECT ${columns} FROM sources WHERE id = ?`);
  const peek = db.prepare<[string], Row>(`SELECT ${columns} FROM sources WHERE path = ?`);
  const active = db.prepare<[], Row>(`SELECT ${columns} FROM sources WHERE active = 1 ORDER BY id`);
  const keepActive = db.prepare("UPDATE sources SET active = id IN (SELECT value FROM json_each(?))");
  const setRoot = db.prepare("UPDATE sources SET root_dev = ?, root_ino = ? WHERE id = ?");
  const setHold = db.prepare("UPDATE sources SET halted = ?, hold_reason = ? WHERE id = ?");
  const setBacklog = db.prepare("UPDATE sources SET backlog = ?, backlog_agreed = ? WHERE id = ?");
  const setUnreadable = db.prepare("UPDATE sources SET unreadable = ? WHERE id = ?");
  const setDegraded = db.prepare("UPDATE sources SET degraded = ? WHERE id = ?");
  const doom = db.prepare(
    "UPDATE files SET state = 'doomed' WHERE source = ? AND state = 'held' AND state <> 'agreed'",
  );
  const setApproved = db.prepare("UPDATE sources SET approved = ? WHERE id = ?");
  const collection = db
    .prepare<[string], string>("SELECT collection_id FROM collections WHERE tier = ?")
    .pluck();
  const setCollection = db.prepare(
    `INSERT INTO collections (tier, collection_id) VALUES (?, ?)
     ON CONFLICT (tier) DO UPDATE SET collection_id = excluded.collection_id`,
  );

  const sourceOf = ({ dev, ino, approved, ...row }: Row): SourceRow => ({
    ...row,
    approved: approved !== 0,
    root: dev === null || ino === null ? undefined : { dev, ino },
  });
  const known = (row: Row | undefined): SourceRow => {
    if (row === undefined) throw new Error("the ledger lost a source's row");
    return sourceOf(row);
  };

  return {
    open: (path, ownerId, tier) => known(upsert.get(path, ownerId, tier)),
    peek: (path, ownerId, tier) => {
      const row = peek.get(path);
      return row && sourceOf({ ...row, ownerId, tier });
    },
    get: (id) => known(get.get(id)),
    active: () => active.all().map(sourceOf),
    keepActive: (ids) => {
      keepActive.run(JSON.stringify(ids));
    },
    setRoot: (id, { dev, ino }) => {
      setRoot.run(dev, ino, id);
    },
    setHold: (id, { halted, reason }) => {
      setHold.run(halted, reason, id);
    },
    setBacklog: (id, backlog, backlogAgreed) => {
      setBacklog.run(backlog, backlogAgreed, id);
    },
    setUnreadable: (id, count) => {
      setUnreadable.run(count, id);
    },
    setDegraded: (id, reason) => {
      setDegraded.run(reason, id);
    },
    approve: (id) => {
      doom.run(id);
      setApproved.run(1, id);
    },
    approvalUsed: (id) => {
      setApproved.run(0, id);
    },
    collectionId: (tier) => collection.get(tier),
    setCollectionId: (tier, id) => {
      setCollection.run(tier, id);
    },
  };
}
