import type { Account, KeyRecord, ResourceKey } from "./records.ts";

/** The fields of a key that can change; a missing field stays as it is. */
export interface KeyChange extends ResourceKey {
  readonly name?: string;
  readonly scopes?: KeyRecord["scopes"];
  readonly expiresAt?: string | null;
  /** Cannot be cleared once set. */
  readonly revokedAt?: string;
}

/** Management of an account's keys. */
export interface KeyStore {
  /** All keys of the account, including revoked ones, oldest first. */
  keys(accountId: string): Promise<readonly KeyRecord[]>;
  /** Returns undefined if the account has no such key. */
  changeKey(change: KeyChange): Promise<KeyRecord | undefined>;
  /** All accounts, ordered by name. */
  accounts(): Promise<readonly Account[]>;
}
