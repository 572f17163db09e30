import { TIERS } from "../../../../wire/constants.ts";
import type { Account } from "../../accounts.ts";
import type { Records } from "../../records.ts";
import type { Transaction } from "../database/connections.ts";

/** Accounts inside a transaction. `newIds` returns ids for an account and its collections. */
export function accountsOn(
  tx: Transaction,
  newIds: () => readonly string[],
): Pick<Records, "ensureAccount" | "accounts"> {
  return {
    async ensureAccount(name) {
      const select = "SELECT id, name FROM account WHERE name = @name";
      const found = await tx.get<Account>(select, { name });
      if (found !== undefined) return found;
      const [id = "", ...collections] = newIds();
      const made = await tx.run("INSERT INTO account (id, name) VALUES (@id, @name) ON CONFLICT DO NOTHING", {
        id,
        name,
      });
      if (made === 0) {
        // Another process has just created it.
        const theirs = await tx.get<Account>(select, { name });
        if (theirs === undefined) throw new TypeError("an account that exists was not found");
        return theirs;
      }
      await tx.run(
        `INSERT INTO collection (id, account_id, tier)
        SELECT new.id, @id, new.tier FROM unnest(@collections::text[], @tiers::text[]) AS new (id, tier)`,
        { id, collections, tiers: TIERS },
      );
      return { id, name };
    },
    accounts: () => tx.all<Account>("SELECT id, name FROM account ORDER BY name"),
  };
}
