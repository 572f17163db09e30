import type { Account, KeyRecord, ResourceKey } from "./records.ts";

/** What may be changed of a key; a missing field stays. */
export interface KeyChange extends ResourceKey {
  readonly name?: string;
  readonly scopes?: KeyRecord["scopes"];
  readonly expiresAt?: string | null;
  /** Once set it stays. */
  readonly revokedAt?: string;
}

/** Keys of an account, for those who manage them. */
export interface KeyStore {
  /** All keys of the account, revoked ones too, oldest first. */
  keys(accountId: string): Promise<readonly KeyRecord[]>;
  /** Undefined: the account has no such key. */
  changeKey(change: KeyChange): Promise<KeyRecord | undefined>;
  /** All accounts by name. */
  accounts(): Promise<readonly Account[]>;
}
