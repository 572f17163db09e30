import assert from "node:assert/strict";
import { KbsyncError } from "../../../../lib/failure.ts";
import { rowOf, SCOPE_NUMBER_MAX, SEQUENCE_MAX } from "../../../index/rows.ts";
import type { NewResource, ResourceKey } from "../../resources.ts";
import { isWorn, SEGMENTS_MERGED } from "../../search/merge-rules.ts";
import type { Transaction } from "../database/connections.ts";

/** An owner's part of a collection. */
export interface OpenScope {
  readonly number: number;
  readonly collectionId: string;
  readonly ownerId: string;
}

/** An owner in a collection. */
type OwnerOf = Pick<NewResource, "tier" | "ownerId">;

/** Returns the scope of each of these owners; creates those that do not exist. Throws `store_full`. */
export async function openScopes(
  tx: Transaction,
  accountId: string,
  owners: readonly OwnerOf[],
): Promise<OpenScope[]> {
  const wanted = [...new Map(owners.map((owner) => [keyOf(owner), owner])).values()];
  let found = await findScopes(tx, accountId, wanted);
  if (found.size < wanted.length) {
    await createScopes(
      tx,
      accountId,
      wanted.filter((owner) => !found.has(keyOf(owner))),
    );
    found = await findScopes(tx, accountId, wanted);
  }
  return owners.map((owner) => {
    const scope = found.get(keyOf(owner));
    if (scope !== undefined) return scope;
    throw new KbsyncError(`no account ${accountId} in the store`, { code: "no_account", subject: accountId });
  });
}

/** The owner as the database has it. */
const keyOf = ({ tier, ownerId }: OwnerOf): string => `${tier} ${ownerId.toWellFormed()}`;

async function findScopes(
  tx: Transaction,
  accountId: string,
  owners: readonly OwnerOf[],
): Promise<Map<string, OpenScope>> {
  const rows = await tx.all<OpenScope & OwnerOf>(
    `SELECT scope.number, collection.id AS "collectionId", collection.tier, scope.owner_id AS "ownerId"
    FROM unnest(@tiers::text[], @owners::text[]) AS wanted (tier, owner)
      JOIN collection ON collection.account_id = @accountId AND collection.tier = wanted.tier
      JOIN scope ON scope.collection_id = collection.id AND scope.owner_id = wanted.owner`,
    { accountId, ...columnsOf(owners) },
  );
  return new Map(rows.map(({ tier, ...scope }) => [keyOf({ tier, ownerId: scope.ownerId }), scope]));
}

/** Another process may create one at the same time: this one waits for it. In an order, so that neither waits for the other. */
async function createScopes(tx: Transaction, accountId: string, owners: readonly OwnerOf[]): Promise<void> {
  const used = await tx.get<{ last: number }>("SELECT last_value AS last FROM scope_number");
  if ((used?.last ?? 0) > SCOPE_NUMBER_MAX - owners.length)
    throw full(`${SCOPE_NUMBER_MAX} owners of all accounts`);
  await tx.run(
    `INSERT INTO scope (collection_id, owner_id)
    SELECT collection.id, wanted.owner FROM unnest(@tiers::text[], @owners::text[]) AS wanted (tier, owner)
      JOIN collection ON collection.account_id = @accountId AND collection.tier = wanted.tier
    ORDER BY collection.id, wanted.owner
    ON CONFLICT (collection_id, owner_id) DO NOTHING`,
    { accountId, ...columnsOf(owners) },
  );
}

function columnsOf(owners: readonly OwnerOf[]) {
  return { tiers: owners.map(({ tier }) => tier), owners: owners.map(({ ownerId }) => ownerId) };
}

/**
 * Locks the scopes of resources, in the order of their numbers. From here on no other transaction changes one of these resources, so
 * what is read of them afterwards stays as it is.
 */
export async function lockScopes(
  tx: Transaction,
  accountId: string,
  ids: readonly ResourceKey["id"][],
): Promise<void> {
  await tx.run(
    `SELECT 1 FROM scope WHERE number IN (
      SELECT scope FROM resource WHERE account_id = @accountId AND id = ANY (@ids::text[]))
    ORDER BY number FOR UPDATE`,
    { accountId, ids },
  );
}

/** Changes of a scope's counts; negative: removes. */
export interface ScopeChange {
  readonly resources?: number;
  readonly chunks?: number;
  readonly words?: number;
  /** Rows to reserve. */
  readonly rows?: number;
  /** New segments of the index of words, and chunks whose removal it notes: they decide whether a merge is due. */
  readonly segments?: number;
  readonly removed?: number;
  /** Whether a filter may match other chunks than before. */
  readonly refilters?: boolean;
}

/** Locks a scope, changes its counts, and returns the first of the reserved rows. */
export async function changeScope(tx: Transaction, scope: number, change: ScopeChange): Promise<number> {
  const first = (await changeScopes(tx, new Map([[scope, change]]))).get(scope);
  assert(first !== undefined);
  return first;
}

/**
 * Locks scopes in the order of their numbers, changes their counts, and returns the first of the reserved rows of each.
 */
export async function changeScopes(
  tx: Transaction,
  changes: ReadonlyMap<number, ScopeChange>,
): Promise<Map<number, number>> {
  const all = [...changes.values()];
  const sums = (of: (change: ScopeChange) => number | undefined): number[] =>
    all.map((each) => of(each) ?? 0);
  const rows = sums((change) => change.rows);
  const after = await tx.all<ChangedScope>(
    `WITH locked AS MATERIALIZED (
      SELECT number FROM scope WHERE number = ANY (@scopes::bigint[]) ORDER BY number FOR UPDATE)
    UPDATE scope SET next_sequence = next_sequence + change.rows, resources = scope.resources + change.resources,
      chunks = scope.chunks + change.chunks, words = scope.words + change.words,
      segments = scope.segments + change.segments, removed = scope.removed + change.removed,
      refiltered = refiltered + change.refilters
    FROM locked JOIN unnest(@scopes::bigint[], @rows::bigint[], @resources::bigint[], @chunks::bigint[], @words::bigint[],
        @segments::bigint[], @removed::bigint[], @refilters::int[])
      AS change (scope, rows, resources, chunks, words, segments, removed, refilters) ON change.scope = locked.number
    WHERE scope.number = locked.number RETURNING scope.number, next_sequence AS next, change.rows,
      scope.segments, scope.removed, scope.chunks`,
    {
      scopes: [...changes.keys()],
      rows,
      resources: sums((change) => change.resources),
      chunks: sums((change) => change.chunks),
      words: sums((change) => change.words),
      segments: sums((change) => change.segments),
      removed: sums((change) => change.removed),
      refilters: sums((change) => Number(change.refilters ?? false)),
    },
  );
  if (after.length !== changes.size) throw new TypeError("the scope of a resource was not found");
  if (after.some(({ next }) => next > SEQUENCE_MAX))
    throw full(`${SEQUENCE_MAX} chunks written for one owner`);
  for (const { number, segments, removed, chunks } of after)
    if (segments >= SEGMENTS_MERGED || isWorn(removed, chunks)) tx.due?.add(number);
  return new Map(after.map(({ number, next, rows: reserved }) => [number, rowOf(number, next - reserved)]));
}

/** A scope after a change. */
interface ChangedScope {
  readonly number: number;
  readonly next: number;
  readonly rows: number;
  readonly segments: number;
  readonly removed: number;
  readonly chunks: number;
}

function full(what: string): KbsyncError {
  return new KbsyncError(`the knowledge base has room for no more than ${what}`, { code: "store_full" });
}
