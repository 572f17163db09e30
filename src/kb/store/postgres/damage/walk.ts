import { z } from "zod";
import { KbsyncError, messageOf } from "../../../../lib/failure.ts";
import { isDamage } from "../../damage.ts";
import type { CheckStep, Damage, DamageCheck } from "../../damage-check.ts";
import type { Transaction } from "../database/connections.ts";
import type { Database } from "../database/database.ts";
import { saveRecord, storedRecord } from "../queue/check-record.ts";
import { checkChunks, makeChunkMemory, type ChunkMemory } from "./chunks.ts";
import { checkDocuments } from "./documents.ts";
import { checkPages } from "./pages.ts";
import { indexAgain, rebuildPart } from "./rebuild.ts";
import { damageIn, scopeFrom, type CheckedScope, type FoundDamage } from "./scope.ts";

/**
 * Where a check is: in a scope after a document, a row or a page, or after the token of a file. Each scope is checked table by table,
 * so a position can be read again after any pause.
 */
type Place = z.infer<typeof PlaceWire>;
type ScopePlace = Exclude<Place, { readonly at: "files" }>;

const PlaceWire = z.discriminatedUnion("at", [
  z.object({ at: z.enum(["documents", "chunks"]), scope: z.number(), after: z.number() }),
  z.object({ at: z.literal("pages"), scope: z.number(), run: z.number(), page: z.number() }),
  z.object({ at: z.literal("files"), after: z.string() }),
]);

/** Files of one step. */
const FILES = 100;
/** Age from which a recorded file must have its bytes: an upload that a crash interrupted is finished until then. */
const FILE_HOURS = 24;

/** Chunks of one step: some 20 ms of work. A step reads as many rows of other tables, and pages of the index in proportion. */
const STEP_ROWS = 2000;

/** The check of a database. */
export function openDamageCheck(database: Pick<Database, "run">, stepRows = STEP_ROWS): DamageCheck {
  let memory = makeChunkMemory(stepRows);
  return {
    step: async (position) => {
      const place = position === "" ? atScope(0) : PlaceWire.parse(JSON.parse(position));
      const step = await stepAt(database, place, memory);
      if (step.next === undefined) memory = { ...memory, runs: new Map() };
      return { ...step, next: step.next && JSON.stringify(step.next) };
    },
    record: () => database.run("single", "", storedRecord),
    save: (record) => database.run("write", "", (tx) => saveRecord(tx, record)),
  };
}

const atScope = (scope: number): ScopePlace => ({ at: "documents", scope, after: 0 });

type Step = Omit<CheckStep, "next"> & { readonly next: Place | undefined };

async function stepAt(database: Pick<Database, "run">, place: Place, memory: ChunkMemory): Promise<Step> {
  if (place.at === "files") return checkFiles(database, place.after);
  const of = await database.run("single", "", (tx) => scopeFrom(tx, place.scope));
  if (of === undefined) return { damage: [], files: [], next: { at: "files", after: "" } };
  const from = of.scope === place.scope ? place : atScope(of.scope);
  try {
    const step = await database.run("snapshot", of.accountId, (tx) => checkScope(tx, of, from, memory));
    return { damage: await rebuilt(database, of, step.damage), files: [], next: step.next };
  } catch (error) {
    if (!isDamage(error)) throw error;
    // PostgreSQL cannot read a table. The rest of the scope is left out, or the check would never get beyond it.
    return {
      damage: [damageIn(of, "unreadable", messageOf(error)).damage],
      files: [],
      next: atScope(of.scope + 1),
    };
  }
}

async function checkScope(
  tx: Transaction,
  of: CheckedScope,
  from: ScopePlace,
  memory: ChunkMemory,
): Promise<{ readonly damage: readonly FoundDamage[]; readonly next: Place | undefined }> {
  const { scope } = of;
  switch (from.at) {
    case "documents": {
      const { damage, next } = await checkDocuments(tx, of, from.after, memory.stepRows);
      const then: Place = { at: "chunks", scope, after: 0 };
      return { damage, next: next === undefined ? then : { ...from, after: next } };
    }
    case "chunks": {
      const { damage, next } = await checkChunks(tx, of, from.after, memory);
      const then: Place = { at: "pages", scope, run: 0, page: 0 };
      return { damage, next: next === undefined ? then : { ...from, after: next } };
    }
    case "pages": {
      const { damage, next } = await checkPages(tx, of, from, memory.stepRows);
      return { damage, next: next === undefined ? atScope(scope + 1) : { ...from, ...next } };
    }
  }
}

/** Rebuilds what can be rebuilt from the chunks, and returns the damage with what became of it. */
async function rebuilt(
  database: Pick<Database, "run">,
  of: CheckedScope,
  found: readonly FoundDamage[],
): Promise<Damage[]> {
  const { accountId, scope } = of;
  /** What was rebuilt: several pages of a run are damage each. */
  const done = new Set<string>();
  const damage: Damage[] = [];
  for (const { damage: each, rebuild } of found) {
    const key = JSON.stringify(rebuild);
    let { subject } = each;
    if (rebuild !== undefined && !done.has(key)) {
      const work = async (tx: Transaction): Promise<boolean> => {
        if (rebuild.kind !== "document") return rebuildPart(tx, { accountId, scope }, rebuild);
        await indexAgain(tx, accountId, rebuild.id);
        return true;
      };
      try {
        if (await database.run("write", accountId, work)) done.add(key);
      } catch (error) {
        // Other damage is in the way, as of a document that lacks chunks. Nothing was changed, and the check must get beyond it.
        if (isDamage(error) || !(error instanceof KbsyncError) || error.retryable) throw error;
        subject += `, which cannot be made anew: ${messageOf(error)}`;
      }
    }
    damage.push(done.has(key) ? { ...each, rule: "rebuilt" } : { ...each, subject });
  }
  return damage;
}

/** Returns the recorded files after a token. */
async function checkFiles(database: Pick<Database, "run">, after: string): Promise<Step> {
  const before = new Date(Date.now() - FILE_HOURS * 3_600_000).toISOString();
  const rows = await database.run("single", "", (tx) =>
    tx.all<{ token: string; name: string; account: string; createdAt: string }>(
      `SELECT token, stored_file.name, account.name AS account, created_at AS "createdAt"
      FROM stored_file JOIN account ON account.id = account_id WHERE token > @after ORDER BY token LIMIT ${FILES}`,
      { after },
    ),
  );
  const last = rows.length < FILES ? undefined : rows.at(-1)?.token;
  return {
    damage: [],
    files: rows.filter(({ createdAt }) => createdAt < before),
    next: last === undefined ? undefined : { at: "files", after: last },
  };
}
