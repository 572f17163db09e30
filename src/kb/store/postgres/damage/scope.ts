import type { Damage } from "../../damage-check.ts";
import type { Transaction } from "../database/connections.ts";
import type { PartName } from "./rebuild.ts";

/** A scope that is checked, with what people know it by. */
export interface CheckedScope {
  readonly scope: number;
  readonly accountId: string;
  readonly account: string;
  readonly tier: string;
  readonly owner: string;
}

/** Damage with what can be rebuilt to end it: a part of the index of words, or the entries of a document. */
export interface FoundDamage {
  readonly damage: Damage;
  readonly rebuild?: PartName | { readonly kind: "document"; readonly id: string };
}

/** What a step found in a scope. `next`: the key after which the next step goes on; undefined: this was the last one. */
export interface Checked {
  readonly damage: readonly FoundDamage[];
  readonly next: number | undefined;
}

/** Returns the first scope from a number on. */
export function scopeFrom(tx: Transaction, scope: number): Promise<CheckedScope | undefined> {
  return tx.get<CheckedScope>(
    `SELECT number AS scope, account_id AS "accountId", account.name AS account, tier, owner_id AS owner
    FROM scope JOIN collection ON collection.id = collection_id JOIN account ON account.id = account_id
    WHERE number >= @scope ORDER BY number LIMIT 1`,
    { scope },
  );
}

/** Makes damage in a scope. */
export function damageIn(
  { account, tier, owner }: CheckedScope,
  rule: Damage["rule"],
  subject: string,
  rebuild?: FoundDamage["rebuild"],
): FoundDamage {
  return { damage: { rule, subject, account, tier, owner }, ...(rebuild && { rebuild }) };
}
