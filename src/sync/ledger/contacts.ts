import { z } from "zod";
import type { Tier } from "../../wire/primitives.ts";
import { openMeta } from "./database/meta.ts";
import type { HoldKind } from "./sources/rows.ts";
import type { Sqlite } from "./database/open.ts";

/** One owner's part of a collection. */
export interface Scope {
  readonly tier: Tier;
  readonly ownerId: string;
}

/**
 * What contact with the service showed, by source. Changes are plain statements: run them inside a group commit.
 */
export interface Contacts extends Losses {
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
export function openContacts(db: Sqlite): Contacts {
  const meta = openMeta(db);
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
    ...prepareLosses(db),
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
