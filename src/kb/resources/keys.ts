import { hash, randomBytes } from "node:crypto";
import type { KeyRecord, KeyScope, Store } from "../store/store.ts";

/** Every key begins so; secret scanners and people recognise it. */
export const KEY_PREFIX = "kb_";
/** The account of the embedded service. */
export const LOCAL_ACCOUNT = "local";
export const ALL_SCOPES: readonly KeyScope[] = ["read", "write", "chat", "admin"];

/** A new key: the prefix and 256 random bits in base64url, 46 characters. */
export function generateKey(): string {
  return KEY_PREFIX + randomBytes(32).toString("base64url");
}

/** SHA-256 in 64 hex digits: the only form in which a key is stored. Its 256 random bits make salt and stretching needless. */
export function hashKey(key: string): string {
  return hash("sha256", key, "hex");
}

/** What a key may do and for whom. */
export interface KeyGrant {
  /** Made when it is new. */
  readonly account: string;
  /** For people, in lists. */
  readonly name: string;
  readonly scopes: readonly KeyScope[];
  readonly createdAt: string;
  readonly expiresAt: string | null;
}

/** Makes the account and stores the hash of `key` for it. Doing so again with the same key replaces the grant. */
export async function registerKey(store: Store, key: string, grant: KeyGrant): Promise<KeyRecord> {
  const account = await store.ensureAccount(grant.account);
  const record: KeyRecord = {
    sha256: hashKey(key),
    accountId: account.id,
    name: grant.name,
    scopes: grant.scopes,
    createdAt: grant.createdAt,
    expiresAt: grant.expiresAt,
  };
  await store.putKey(record);
  return record;
}
