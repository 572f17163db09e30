import { newHexId } from "../../../../lib/ids.ts";
import { Tier } from "../../../../wire/primitives.ts";
import type { KeyScope } from "../../records.ts";
import { type Connection, openForReading, openForWriting } from "../database/connection.ts";
import { storeFailure } from "../database/failures.ts";
import type { KeyRow } from "../database/records.ts";
import { prepareSmallWrites } from "./small-writes.ts";

/** Numbers of keys that were restricted. */
export interface CarriedKeys {
  readonly revoked: number;
  /** Keys that got an earlier expiry. */
  readonly endEarlier: number;
  /** Keys that lost scopes. */
  readonly narrowed: number;
}

/**
 * Applies later restrictions of these keys to an older store file, which nothing else may use: revocations, earlier
 * expiries, removed scopes. Applies all or none. Never gives a key more than it has in that file, whichever of the two
 * stores is older. Throws a KbsyncError if the file cannot be written.
 */
export function carryKeys(keys: readonly StoredKey[], into: string): CarriedKeys {
  const db = openForWriting(into);
  try {
    return db.transaction(() => carry(db, keys))();
  } catch (error) {
    throw storeFailure(error, into);
  } finally {
    db.close();
  }
}

/** Counts the keys in a store file that are neither revoked nor expired. Throws a KbsyncError if it cannot be read. */
export function countValidKeys(path: string, nowMs: number): number {
  return keysIn(path).filter(({ revokedAt, expiresAt }) => revokedAt === null && endMs(expiresAt) > nowMs)
    .length;
}

/** A key of one store, to be compared with another store. */
export interface StoredKey {
  readonly sha256: string;
  readonly scopes: readonly KeyScope[];
  readonly expiresAt: string | null;
  readonly revokedAt: string | null;
  /** The whole row and the name of its account, to insert a key that the other store lacks. */
  readonly row: KeyRow & { readonly account: string };
}

/** Returns all keys of a store file. Throws a KbsyncError if it cannot be read. */
export function keysIn(path: string): StoredKey[] {
  const db = openForReading(path);
  try {
    const rows = db.prepare<[], StoredKey["row"]>(
      "SELECT api_key.*, account.name AS account FROM api_key JOIN account ON account.id = account_id",
    );
    return rows.all().map((row) => ({
      sha256: row.sha256,
      scopes: JSON.parse(row.scopes) as KeyScope[], // written by this store from a KeyRecord
      expiresAt: row.expires_at,
      revokedAt: row.revoked_at,
      row,
    }));
  } catch (error) {
    throw storeFailure(error, path);
  } finally {
    db.close();
  }
}

function carry(db: Connection, keys: readonly StoredKey[]): CarriedKeys {
  const find = db.prepare<[string], KeyRow>("SELECT * FROM api_key WHERE sha256 = ?");
  const change = db.prepare(
    "UPDATE api_key SET scopes = @scopes, expires_at = @expiresAt, revoked_at = @revokedAt WHERE sha256 = @sha256",
  );
  const insert = db.prepare(`
    INSERT INTO api_key (sha256, id, hint, account_id, name, scopes, created_at, expires_at, revoked_at)
    VALUES (@sha256, @id, @hint, @accountId, @name, @scopes, @created_at, @expires_at, @revoked_at)`);
  const small = prepareSmallWrites(db);
  let [revoked, endEarlier, narrowed] = [0, 0, 0];
  for (const { sha256, scopes, expiresAt, revokedAt, row } of keys) {
    const older = find.get(sha256);
    if (older === undefined) {
      if (revokedAt === null) continue;
      // A key file may still contain it, and would create it as a new key.
      const ids = [row.account_id, ...Tier.options.map(() => newHexId(Date.parse(revokedAt)))];
      insert.run({ ...row, accountId: small.ensureAccount(row.account, ids).id });
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
