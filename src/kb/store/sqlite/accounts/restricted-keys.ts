import { newHexId } from "../../../../lib/ids.ts";
import { TIERS } from "../../../../wire/constants.ts";
import type { AccountKey, RestrictedKeys } from "../../maintenance.ts";
import type { KeyScope } from "../../accounts.ts";
import { type Connection, openForWriting } from "../database/connection.ts";
import { storeFailure } from "../database/failures.ts";
import { keyOf, type KeyRow } from "../../rows/keys.ts";
import { prepareAccountWrites } from "./accounts.ts";

/** Applies later restrictions of these keys to a store file; see `StoreMaintenance`. */
export function restrictKeys(keys: readonly AccountKey[], path: string): RestrictedKeys {
  const db = openForWriting(path);
  try {
    return db.transaction(() => restrict(db, keys))();
  } catch (error) {
    throw storeFailure(error, path);
  } finally {
    db.close();
  }
}

/** Returns the keys of all accounts. */
export function accountKeys(db: Connection): AccountKey[] {
  const rows = db.prepare<[], KeyRow & { readonly account: string }>(
    "SELECT api_key.*, account.name AS account FROM api_key JOIN account ON account.id = account_id",
  );
  return rows.all().map((row) => Object.assign(keyOf(row), { account: row.account }));
}

function restrict(db: Connection, keys: readonly AccountKey[]): RestrictedKeys {
  const find = db.prepare<[string], KeyRow>("SELECT * FROM api_key WHERE sha256 = ?");
  const change = db.prepare(
    "UPDATE api_key SET scopes = @scopes, expires_at = @expiresAt, revoked_at = @revokedAt WHERE sha256 = @sha256",
  );
  const writes = prepareAccountWrites(db);
  let [revoked, endEarlier, narrowed] = [0, 0, 0];
  for (const { account, ...key } of keys) {
    const { sha256, scopes, expiresAt, revokedAt } = key;
    const older = find.get(sha256);
    if (older === undefined) {
      if (revokedAt === null) continue;
      // A key file may still contain it, and would create it as a new key.
      const ids = [key.accountId, ...TIERS.map(() => newHexId(Date.parse(revokedAt)))];
      writes.putKey({ ...key, accountId: writes.ensureAccount(account, ids).id });
      revoked += 1;
      continue;
    }
    const olderScopes = JSON.parse(older.scopes) as KeyScope[]; // written by this store from a KeyRecord
    const after = {
      sha256,
      scopes: JSON.stringify(scopesOfBoth(olderScopes, scopes)),
      expiresAt: endMs(expiresAt) < endMs(older.expires_at) ? expiresAt : older.expires_at,
      revokedAt: older.revoked_at ?? revokedAt,
    };
    if (after.revokedAt !== older.revoked_at) revoked += 1;
    else if (older.revoked_at === null && after.expiresAt !== older.expires_at) endEarlier += 1;
    else if (older.revoked_at === null && after.scopes !== older.scopes) narrowed += 1;
    change.run(after);
  }
  return { revoked, endEarlier, narrowed };
}

/** Returns the scopes that both lists allow. Disjoint lists leave none: a person must decide what such a key may do. */
function scopesOfBoth(one: readonly KeyScope[], other: readonly KeyScope[]): readonly KeyScope[] {
  // `admin` includes all other scopes.
  if (other.includes("admin")) return one;
  return one.includes("admin") ? other : one.filter((scope) => other.includes(scope));
}

function endMs(expiresAt: string | null): number {
  return expiresAt === null ? Number.POSITIVE_INFINITY : Date.parse(expiresAt);
}
