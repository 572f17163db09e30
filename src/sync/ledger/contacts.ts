import { z } from "zod";
import type { Tier } from "../../wire/primitives.ts";
import { openMeta } from "./database/meta.ts";
import type { HoldKind } from "./sources/rows.ts";
import type { Sqlite } from "./database/open.ts";
import { statementsOf } from "./database/statements.ts";

/** One owner's part of a collection. */
export interface Scope {
  readonly tier: Tier;
  readonly ownerId: string;
}

/** A comparison that is due later. */
export interface Again {
  readonly atMs: number;
  readonly round: number;
}

const AgainText = z.object({ atMs: z.number(), round: z.int() });
const Ids = z.array(z.string());

/** Prepares the statements. */
export function openContacts(db: Sqlite) {
  const { run, get, all, has } = statementsOf(db);
  const meta = openMeta(db);
  const loss = get<[source: number], { reason: string; agreed: number }>(
    "SELECT loss AS reason, loss_agreed AS agreed FROM sources WHERE id = ? AND loss IS NOT NULL",
  );
  const setLoss = run("UPDATE sources SET loss = ?, loss_kind = ? WHERE id = ?");
  const clearLoss = run("UPDATE sources SET loss = NULL, loss_agreed = 0 WHERE id = ?");
  const signature = get<[source: number], { markerId: string | null; writer: string | null }>(
    "SELECT marker_id AS markerId, writer FROM sources WHERE id = ?",
  );
  const sign = run("UPDATE sources SET marker_id = ?, writer = ? WHERE id = ?");
  const addScope = run("INSERT OR IGNORE INTO scopes (source, tier, owner_id) VALUES (?, ?, ?)");
  return {
    /**
     * Why a source is held because of what the service lost. `agreed`: a person decided to send it again
     * (`Sources.approve`).
     */
    loss: (source: number): { readonly reason: string; readonly agreed: boolean } | undefined => {
      const found = loss(source);
      return found && { reason: found.reason, agreed: found.agreed === 1 };
    },
    /** `kind` decides what a person can do; default `lost`. */
    setLoss: (source: number, reason: string | undefined, kind: HoldKind = "lost"): void => {
      if (reason === undefined) clearLoss(source);
      else setLoss(reason, kind, source);
    },
    /** Reports whether a source was compared since its ledger is new, or turned out to be old. */
    isAdopted: has<[source: number]>("SELECT 1 FROM sources WHERE id = ? AND adopted = 1"),
    /** Reports whether it never was, and its rows are of files that were sent before. */
    isNew: has<[source: number]>("SELECT 1 FROM sources WHERE id = ? AND adopted = 0"),
    setAdopted: run<[source: number]>("UPDATE sources SET adopted = 1 WHERE id = ?"),
    /** Records that the rows of a source, or of all (null), may be those of an old ledger. One that was never compared stays new. */
    distrust: run<[source: number | null]>(
      "UPDATE sources SET adopted = 2 WHERE coalesce(id = ?, true) AND adopted = 1",
    ),
    /** The id in the markers of a source, and the installation that last wrote them. */
    signature: (
      source: number,
    ): { readonly markerId: string | undefined; readonly writer: string | undefined } => {
      const row = signature(source);
      return { markerId: row?.markerId ?? undefined, writer: row?.writer ?? undefined };
    },
    sign: (source: number, markerId: string, writer: string): void => sign(markerId, writer, source),
    /** Every owner and collection that a source ever wrote to. */
    scopes: all<[source: number], Scope>("SELECT tier, owner_id AS ownerId FROM scopes WHERE source = ?"),
    addScope: (source: number, { tier, ownerId }: Scope): void => addScope(source, tier, ownerId),
    /** Whether descriptions come back as they were sent, with their marker; undefined: not known yet. */
    keepsMarkers: (): boolean | undefined => {
      const keeps = meta.get("keeps_markers");
      return keeps === undefined ? undefined : keeps === "1";
    },
    setKeepsMarkers: (keeps: boolean): void => meta.set("keeps_markers", keeps ? "1" : "0"),
    /** Resources that a person left alone, though nothing shows whose they are. */
    leftAlone: (source: number): ReadonlySet<string> =>
      new Set(Ids.parse(JSON.parse(meta.get(`left_alone ${source}`) ?? "[]"))),
    setLeftAlone: (source: number, docIds: Iterable<string>): void =>
      meta.set(`left_alone ${source}`, JSON.stringify([...docIds])),
    /** The next comparison for lists that may have lagged: when, by the system's clock, and which of them. */
    again: (source: number): Again | undefined => {
      const text = meta.get(`again ${source}`) ?? "";
      return text === "" ? undefined : AgainText.parse(JSON.parse(text));
    },
    setAgain: (source: number, again: Again | undefined): void =>
      meta.set(`again ${source}`, again === undefined ? "" : JSON.stringify(again)),
    auditedMs: (): number | undefined => meta.number("audited_ms"),
    setAuditedMs: (atMs: number): void => meta.set("audited_ms", String(atMs)),
  };
}
