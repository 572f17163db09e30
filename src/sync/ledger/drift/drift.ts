import { z } from "zod";
import type { Tier } from "../../../wire/primitives.ts";
import type { DocumentKind, FileState, ListedResource, RelativePath } from "../../plan/model.ts";
import { openMeta, type Meta } from "../database/meta.ts";
import type { Sqlite } from "../database/open.ts";
import { type Adoptions, prepareAdoptions } from "./adoptions.ts";
import { type LedgerAge, ledgerAge } from "./age.ts";

/** A file's resource as the service acknowledged it, as far as comparing it with the service's list requires. */
export interface AcknowledgedFile {
  readonly id: number;
  readonly source: number;
  readonly path: RelativePath;
  readonly docId: string;
  readonly state: FileState;
  readonly kind: DocumentKind;
  readonly title: string;
  readonly label: string;
  readonly digest: string;
  readonly hash: string;
  readonly fileUrl: string | null;
  /** How the service stores text, and title with description, where it stores another form of them; otherwise null. */
  readonly storedDigest: string | null;
  readonly storedLabel: string | null;
  /**
   * When the service last changed the resource, by its clock, as it answered; null where the answer did not include it.
   */
  readonly storedMs: number | null;
  /** Hash of the metadata that the service acknowledged; null: none. */
  readonly metadataHash: string | null;
}

/** One owner's part of a collection. */
export interface Scope {
  readonly tier: Tier;
  readonly ownerId: string;
}

/**
 * The owner of a resource: the row that owns it; `inFlight` if an intent names it, including a delete or an update, or
 * if the service reports it gone and its file is not created again yet; `deleted` if this ledger deleted it, though a
 * stale list may still show it; undefined if this ledger does not know it.
 */
export type Owner = AcknowledgedFile | "inFlight" | "deleted" | undefined;

/**
 * Reads and records of the comparison with the service's list. Changes are plain statements: run them inside a group
 * commit.
 */
export interface Drift extends AcknowledgedRows, RecentActivity, Losses, Adoptions, LedgerAge {
  /** The same as `distrust` for all sources: at `nowMs` the ledger turned out to be old. */
  distrustAll(nowMs: number): void;
}

/** Resources, their rows and owners. */
interface AcknowledgedRows {
  byDoc(docId: string): AcknowledgedFile | undefined;
  ownerOf(docId: string): Owner;
  /** Returns the row of a path that has a resource, except held rows. */
  byPath(source: number, path: RelativePath): AcknowledgedFile | undefined;
  /** Returns rows with a resource in the scope, of all configured sources, by ascending id above `afterId`. */
  page(scope: Scope, afterId: number, limit: number): AcknowledgedFile[];
  /**
   * Records that a resource was found changed and is sent again. If it comes out the same, the service stores it that
   * way, and nobody changed it.
   */
  setStored(id: number, found: Pick<ListedResource, "digest" | "label">): void;
}

/** Recent actions. */
interface RecentActivity {
  /** Returns the newest entry of the activity log, so that later ones can be recognised. */
  lastActivity(): number;
  /**
   * Returns the resources and paths of what was done after an activity entry, and after a time. An entry later than
   * `nowMs` dates from before the clock was set back, so it is old.
   */
  doneSince(
    entry: number,
    atMs: number,
    nowMs: number,
  ): { readonly docIds: string[]; readonly pathKeys: string[] };
  /** Reports whether a request for this resource succeeded after an activity entry. */
  answeredSince(entry: number, docId: string): boolean;
}

/** Sources whose resources the service lost. */
interface Losses {
  /**
   * Why a source is held because of what the service lost. `agreed`: a person decided to send it again
   * (`Sources.approve`).
   */
  loss(source: number): { readonly reason: string; readonly agreed: boolean } | undefined;
  /** `isUnclear`: nothing is known to be lost, and the daemon asks the service again by itself. */
  setLoss(source: number, reason: string | undefined, isUnclear?: boolean): void;
  /**
   * When resources of a source turned out to be gone since its list was last fetched. Stored, so that a restart does
   * not forget them.
   */
  goneLately(source: number): readonly number[];
  setGoneLately(source: number, timesMs: readonly number[]): void;
}

const Times = z.array(z.number());

/** Returns a key for a path of a source. */
export function pathKey(source: number, path: RelativePath): string {
  return `${source}\n${path}`;
}

/** Prepares the statements. */
export function openDrift(db: Sqlite): Drift {
  const meta = openMeta(db);
  const adoptions = prepareAdoptions(db, meta);
  const age = ledgerAge(meta);
  return {
    ...prepareRows(db),
    ...prepareActivity(db),
    ...prepareLosses(db, meta),
    ...adoptions,
    ...age,
    distrustAll: (nowMs) => {
      adoptions.distrust(null);
      age.setForgottenMs(nowMs);
    },
  };
}

function prepareRows(db: Sqlite): AcknowledgedRows {
  const columns = `files.id, source, files.path, doc_id AS docId, state, shapes.kind AS kind, title, label, digest, hash,
    file_url AS fileUrl, found_digest AS storedDigest, stored_label AS storedLabel, stored_ms AS storedMs,
    metadata_hash AS metadataHash`;
  const byDoc = db.prepare<[string], AcknowledgedFile>(
    `SELECT ${columns} FROM files JOIN shapes ON shapes.id = files.shape WHERE doc_id = ?`,
  );
  // A row whose resource is gone has no shape until its file is created again.
  const isNamed = db
    .prepare<[string, string], number>(
      "SELECT 1 FROM files WHERE doc_id = ? UNION ALL SELECT 1 FROM intents WHERE doc_id = ? LIMIT 1",
    )
    .pluck();
  const isBuried = db.prepare<[string], number>("SELECT 1 FROM tombstones WHERE doc_id = ?").pluck();
  const byPath = db.prepare<[number, string], AcknowledgedFile>(
    `SELECT ${columns} FROM files JOIN shapes ON shapes.id = files.shape
     WHERE source = ? AND files.path = ? AND state NOT IN ('held', 'doomed') AND doc_id IS NOT NULL`,
  );
  // In row order: an index by source would need a new sort for every page.
  const page = db.prepare<[number, string, string, number], AcknowledgedFile>(
    `SELECT ${columns} FROM files NOT INDEXED CROSS JOIN shapes ON shapes.id = files.shape
     WHERE files.id > ? AND doc_id IS NOT NULL AND shapes.tier = ? AND shapes.owner_id = ?
       AND source IN (SELECT id FROM sources WHERE active = 1)
     ORDER BY files.id LIMIT ?`,
  );
  const setStored = db.prepare(
    `UPDATE files SET found_digest = CASE WHEN @digest IN (digest, '') THEN found_digest ELSE @digest END,
       stored_label = CASE label WHEN @label THEN stored_label ELSE @label END WHERE id = @id`,
  );
  return {
    byDoc: (docId) => byDoc.get(docId),
    ownerOf: (docId) => {
      const row = byDoc.get(docId);
      if (row !== undefined) return row;
      if (isNamed.get(docId, docId) !== undefined) return "inFlight";
      return isBuried.get(docId) === undefined ? undefined : "deleted";
    },
    byPath: (source, path) => byPath.get(source, path),
    page: ({ tier, ownerId }, afterId, limit) => page.all(afterId, tier, ownerId, limit),
    setStored: (id, { digest, label }) => void setStored.run({ id, digest, label }),
  };
}

function prepareActivity(db: Sqlite): RecentActivity {
  const lastActivity = db.prepare<[], number | null>("SELECT max(id) FROM activity").pluck();
  const done = db.prepare<[number, number, number], { source: number; path: string; docId: string | null }>(
    `SELECT source, path, doc_id AS docId FROM activity
     WHERE (id > ? OR at_ms > ? AND at_ms <= ?) AND outcome = 'done' AND action <> 'audit'`,
  );
  const answered = db
    .prepare<[number, string], number>(
      `SELECT 1 FROM activity WHERE id > ? AND doc_id = ? AND outcome = 'done'
         AND action IN ('create', 'update', 'retitle', 'replace') LIMIT 1`,
    )
    .pluck();
  return {
    lastActivity: () => lastActivity.get() ?? 0,
    doneSince: (entry, atMs, nowMs) => {
      const rows = done.all(entry, atMs, nowMs);
      return {
        docIds: rows.flatMap(({ docId }) => docId ?? []),
        pathKeys: rows.map(({ source, path }) => pathKey(source, path)),
      };
    },
    answeredSince: (entry, docId) => answered.get(entry, docId) !== undefined,
  };
}

function prepareLosses(db: Sqlite, meta: Meta): Losses {
  const loss = db.prepare<[number], { reason: string; agreed: number }>(
    "SELECT reason, agreed FROM losses WHERE source = ?",
  );
  const setLoss = db.prepare(
    `INSERT INTO losses (source, reason, is_unclear) VALUES (?, ?, ?)
     ON CONFLICT (source) DO UPDATE SET reason = excluded.reason, is_unclear = excluded.is_unclear`,
  );
  const clearLoss = db.prepare("DELETE FROM losses WHERE source = ?");
  return {
    loss: (source) => {
      const row = loss.get(source);
      return row && { reason: row.reason, agreed: row.agreed !== 0 };
    },
    setLoss: (source, reason, isUnclear = false) => {
      if (reason === undefined) clearLoss.run(source);
      else setLoss.run(source, reason, Number(isUnclear));
    },
    goneLately: (source) => {
      const text = meta.get(`gone ${source}`);
      return text === undefined ? [] : Times.parse(JSON.parse(text));
    },
    setGoneLately: (source, timesMs) => {
      if (timesMs.length === 0) meta.remove(`gone ${source}`);
      else meta.set(`gone ${source}`, JSON.stringify(timesMs));
    },
  };
}
