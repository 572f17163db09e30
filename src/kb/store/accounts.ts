import type { ResourceKey } from "./resources.ts";

/** Accounts, their keys, and the sessions of the console. */
export interface AccountRecords {
  /** Returns the account of this name; creates it if it does not exist. The embedded service uses the account `local`. */
  ensureAccount(name: string): Promise<Account>;
  /** All accounts, ordered by name. */
  accounts(): Promise<readonly Account[]>;
  /** Stores a key by its hash. A known hash gets the new scopes, name and expiry. */
  putKey(key: KeyRecord): Promise<void>;
  keyByHash(sha256: string): Promise<KeyRecord | undefined>;
  /** All keys of the account, including revoked ones, oldest first. */
  keys(accountId: string): Promise<readonly KeyRecord[]>;
  /** Returns undefined if the account has no such key. */
  changeKey(change: KeyChange): Promise<KeyRecord | undefined>;

  /**
   * Stores a session of the console, or replaces the one of the same hash. Removes those that ended before `nowMs`, and the
   * ones that end first if there are more than 1000.
   */
  putSession(session: SessionRecord, nowMs: number): Promise<void>;
  session(sha256: string): Promise<SessionRecord | undefined>;
  /** Removes a session. Of several calls at a time, one returns it and the others undefined. */
  takeSession(sha256: string): Promise<SessionRecord | undefined>;
}

export interface Account {
  /** 24 hex digits. */
  readonly id: string;
  readonly name: string;
}

export type KeyScope = "read" | "write" | "chat" | "admin";

export interface KeyRecord {
  /** SHA-256 of the key, 64 hex digits. The key itself is not stored. */
  readonly sha256: string;
  /** 24 hex digits; does not change when the key is put again. */
  readonly id: string;
  /** The first characters of the key, for people to recognise it; empty if unknown. */
  readonly hint: string;
  readonly accountId: string;
  readonly name: string;
  readonly scopes: readonly KeyScope[];
  readonly createdAt: string;
  /** ISO time from which the key is refused; null: never. */
  readonly expiresAt: string | null;
  /** ISO time of the revocation, which is permanent; null: not revoked. */
  readonly revokedAt: string | null;
}

/** A session of the console, or a link that opens one. */
export interface SessionRecord {
  /** SHA-256 of its token, 64 hex digits. The token itself is not stored. */
  readonly sha256: string;
  /** The key that it stands for. */
  readonly keySha256: string;
  readonly kind: "session" | "link";
  /** Unix time from which it is refused. */
  readonly expiresMs: number;
}

/** The fields of a key that can change; a missing field stays as it is. */
export interface KeyChange extends ResourceKey {
  readonly expiresAt?: string | null;
  /** Cannot be cleared once set. */
  readonly revokedAt?: string;
}
