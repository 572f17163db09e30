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
export interface Contacts {
  /**
   * Why a source is held because of what the service lost. `agreed`: a person decided to send it again
   * (`Sources.approve`).
   */
  loss(source: number): { readonly reason: string; readonly agreed: boolean } | undefined;
  /** `kind` decides what a person can do; default `lost`. */
  setLoss(source: number, reason: string | undefined, kind?: HoldKind): void;
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

const AgainText = z.object({ atMs: z.number(), round: z.int() });
const Ids = z.array(z.string());

/** Prepares the statements. */
export function openContacts(db: Sqlite): Contacts {
  const meta = openMeta(db);
  const isAdopted = db.prepare<[number], number>("SELECT adopted FROM sources WHERE id = ?").pluck();
  const setAdopted = db.prepare("UPDATE sources SET adopted = ? WHERE id = ?");
  const distrust = db.prepare("UPDATE sources SET adopted = 0 WHERE coalesce(id = ?, true)");
  const loss = db.prepare<[number], { reason: string | null; agreed: number }>(
    "SELECT loss AS reason, loss_agreed AS agreed FROM sources WHERE id = ?",
  );
  const setLoss = db.prepare("UPDATE sources SET loss = ?, loss_kind = ? WHERE id = ?");
  const clearLoss = db.prepare("UPDATE sources SET loss = NULL, loss_agreed = 0 WHERE id = ?");
  const signature = db.prepare<[number], { markerId: string | null; writer: string | null }>(
    "SELECT marker_id AS markerId, writer FROM sources WHERE id = ?",
  );
  const sign = db.prepare("UPDATE sources SET marker_id = ?, writer = ? WHERE id = ?");
  const scopes = db.prepare<[number], Scope>("SELECT tier, owner_id AS ownerId FROM scopes WHERE source = ?");
  const addScope = db.prepare("INSERT OR IGNORE INTO scopes (source, tier, owner_id) VALUES (?, ?, ?)");
  return {
    loss: (source) => {
      const { reason = null, agreed } = loss.get(source) ?? {};
      return reason === null ? undefined : { reason, agreed: agreed === 1 };
    },
    setLoss: (source, reason, kind = "lost") => {
      if (reason === undefined) clearLoss.run(source);
      else setLoss.run(reason, kind, source);
    },
    isAdopted: (source) => isAdopted.get(source) === 1,
    setAdopted: (source, adopted) => void setAdopted.run(Number(adopted), source),
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
