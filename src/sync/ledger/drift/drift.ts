import { z } from "zod";
import type { Tier } from "../../../wire/primitives.ts";
import type { DocumentKind, FileState, ListedResource, RelativePath } from "../../plan/model.ts";
import { openMeta, type Meta } from "../database/meta.ts";
import type { HoldKind } from "../sources/rows.ts";
import type { Sqlite } from "../database/open.ts";

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
  readonly extractorVersion: number;
  /** Former versions that this ledger sent, as `withSent` gives them. */
  readonly sent: string;
  /** Orders the acknowledgements, near the time of day. */
  readonly acknowledgedMs: number;
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
export interface Drift extends AcknowledgedRows, Losses, Contacts {}

/** Resources, their rows and owners. */
interface AcknowledgedRows {
  byDoc(docId: string): AcknowledgedFile | undefined;
  ownerOf(docId: string): Owner;
  /** Returns the row of a path that has a resource, except held rows. */
  byPath(source: number, path: RelativePath): AcknowledgedFile | undefined;
  /** Returns rows of a source that have a resource, by ascending id above `afterId`. */
  page(source: number, afterId: number, limit: number): AcknowledgedFile[];
  /** Returns the latest acknowledgement of all. */
  latestMs(): number;
  /**
   * Records that a resource was found changed and is sent again. If it comes out the same, the service stores it that
   * way, and nobody changed it.
   */
  setStored(id: number, found: Pick<ListedResource, "digest" | "label">): void;
}

/** What the comparisons of sources with the service's list found. */
interface Contacts {
  /** Reports whether a source was compared since its ledger is new, or turned out to be old. */
  isAdopted(source: number): boolean;
  setAdopted(source: number, adopted: boolean): void;
  /** Records that the rows of a source, or of all (null), may be those of an old ledger. */
  distrust(source: number | null): void;
  /** The id in the markers of a source, and the installation that last wrote them. */
  signature(source: number): { readonly markerId: string | undefined; readonly writer: string | undefined };
  sign(source: number, markerId: string, writer: string): void;
  /** Every owner and collection that a source ever wrote to. */
  scopes(source: number): readonly Scope[];
  addScope(source: number, scope: Scope): void;
  /** Whether descriptions come back as they were sent, with their marker; undefined: not known yet. */
  keepsMarkers(): boolean | undefined;
  setKeepsMarkers(keeps: boolean): void;
  /** Resources with a damaged marker that a person left alone. */
  leftAlone(source: number): ReadonlySet<string>;
  setLeftAlone(source: number, docIds: Iterable<string>): void;
  /** The next comparison for lists that may have lagged: when, by the system's clock, and which of them. */
  again(source: number): Again | undefined;
  setAgain(source: number, again: Again | undefined): void;
  auditedMs(): number | undefined;
  setAuditedMs(atMs: number): void;
}

/** A comparison that is due later. */
export interface Again {
  readonly atMs: number;
  readonly round: number;
}

/** Sources whose resources the service lost. */
interface Losses {
  /**
   * Why a source is held because of what the service lost. `agreed`: a person decided to send it again
   * (`Sources.approve`).
   */
  loss(source: number): { readonly reason: string; readonly agreed: boolean } | undefined;
  /** `kind` decides what a person can do; default `lost`. */
  setLoss(source: number, reason: string | undefined, kind?: HoldKind): void;
}

const AgainText = z.object({ atMs: z.number(), round: z.int() });
const Ids = z.array(z.string());

/** Prepares the statements. */
export function openDrift(db: Sqlite): Drift {
  const meta = openMeta(db);
  return { ...prepareRows(db), ...prepareLosses(db), ...prepareContacts(db, meta) };
}

function prepareRows(db: Sqlite): AcknowledgedRows {
  const columns = `files.id, source, files.path, doc_id AS docId, state, shapes.kind AS kind, title, label, digest, hash,
    file_url AS fileUrl, found_digest AS storedDigest, stored_label AS storedLabel, stored_ms AS storedMs,
    metadata_hash AS metadataHash, extractor_version AS extractorVersion, sent, acknowledged_ms AS acknowledgedMs`;
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
  const page = db.prepare<[number, number, number], AcknowledgedFile>(
    `SELECT ${columns} FROM files NOT INDEXED CROSS JOIN shapes ON shapes.id = files.shape
     WHERE files.id > ? AND doc_id IS NOT NULL AND +source = ? ORDER BY files.id LIMIT ?`,
  );
  const latest = db.prepare<[], number | null>("SELECT max(acknowledged_ms) FROM files").pluck();
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
    page: (source, afterId, limit) => page.all(afterId, source, limit),
    latestMs: () => latest.get() ?? 0,
    setStored: (id, { digest, label }) => void setStored.run({ id, digest, label }),
  };
}

function prepareContacts(db: Sqlite, meta: Meta): Contacts {
  const isAdopted = db.prepare<[number], number>("SELECT 1 FROM adopted WHERE source = ?").pluck();
  const adopt = db.prepare("INSERT OR IGNORE INTO adopted VALUES (?)");
  const distrust = db.prepare("DELETE FROM adopted WHERE coalesce(source = ?, true)");
  const signature = db.prepare<[number], { markerId: string | null; writer: string | null }>(
    "SELECT marker_id AS markerId, writer FROM sources WHERE id = ?",
  );
  const sign = db.prepare("UPDATE sources SET marker_id = ?, writer = ? WHERE id = ?");
  const scopes = db.prepare<[number], Scope>("SELECT tier, owner_id AS ownerId FROM scopes WHERE source = ?");
  const addScope = db.prepare("INSERT OR IGNORE INTO scopes (source, tier, owner_id) VALUES (?, ?, ?)");
  return {
    isAdopted: (source) => isAdopted.get(source) !== undefined,
    setAdopted: (source, adopted) => void (adopted ? adopt : distrust).run(source),
    distrust: (source) => void distrust.run(source),
    signature: (source) => {
      const row = signature.get(source);
      return { markerId: row?.markerId ?? undefined, writer: row?.writer ?? undefined };
    },
    sign: (source, markerId, writer) => void sign.run(markerId, writer, source),
    scopes: (source) => scopes.all(source),
    addScope: (source, { tier, ownerId }) => void addScope.run(source, tier, ownerId),
    keepsMarkers: () => {
      const keeps = meta.get("keeps_markers");
      return keeps === undefined ? undefined : keeps === "1";
    },
    setKeepsMarkers: (keeps) => meta.set("keeps_markers", keeps ? "1" : "0"),
    leftAlone: (source) => new Set(Ids.parse(JSON.parse(meta.get(`left_alone ${source}`) ?? "[]"))),
    setLeftAlone: (source, docIds) => meta.set(`left_alone ${source}`, JSON.stringify([...docIds])),
    again: (source) => {
      const text = meta.get(`again ${source}`) ?? "";
      return text === "" ? undefined : AgainText.parse(JSON.parse(text));
    },
    setAgain: (source, again) =>
      meta.set(`again ${source}`, again === undefined ? "" : JSON.stringify(again)),
    auditedMs: () => meta.number("audited_ms"),
    setAuditedMs: (atMs) => meta.set("audited_ms", String(atMs)),
  };
}

function prepareLosses(db: Sqlite): Losses {
  const loss = db.prepare<[number], { reason: string; agreed: number }>(
    "SELECT reason, agreed FROM losses WHERE source = ?",
  );
  const setLoss = db.prepare(
    `INSERT INTO losses (source, reason, kind) VALUES (?, ?, ?)
     ON CONFLICT (source) DO UPDATE SET reason = excluded.reason, kind = excluded.kind`,
  );
  const clearLoss = db.prepare("DELETE FROM losses WHERE source = ?");
  return {
    loss: (source) => {
      const row = loss.get(source);
      return row && { reason: row.reason, agreed: row.agreed !== 0 };
    },
    setLoss: (source, reason, kind = "lost") => {
      if (reason === undefined) clearLoss.run(source);
      else setLoss.run(source, reason, kind);
    },
  };
}
