import type { Finding } from "../../lib/finding.ts";
import type { KeyRecord } from "./accounts.ts";
import type { StoredFile } from "./files.ts";

/**
 * Access of backup, restore and doctor to a store at rest, without its service. Each method throws a KbsyncError if the store
 * cannot be read.
 */
export interface StoreMaintenance {
  /**
   * Checks the store, also while a service uses it; changes nothing. Damage is a finding, not an error. Undefined: there is
   * no store.
   */
  check(options?: StoreCheckOptions): StoreReport | undefined;
  /** All uploaded files that the store records, ordered by token. */
  uploads(): readonly KnownUpload[];
  /** Upgrades a store that nothing else uses to the schema of this program. */
  upgrade(): void;
  /** The keys of all accounts. */
  keys(): readonly AccountKey[];
  /**
   * Applies later restrictions of these keys to an older store, which nothing else may use: revocations, earlier expiries,
   * removed scopes. Applies all or none. Never gives a key more than it has in the store, whichever of the two is older.
   */
  restrictKeys(keys: readonly AccountKey[]): RestrictedKeys;
}

/** The extent of a check. */
export interface StoreCheckOptions {
  /** Skips checks that read every page and every text: seconds instead of minutes at a million chunks. */
  readonly quick?: boolean;
}

/** The counts of a store and what is wrong with it. */
export interface StoreReport {
  readonly resources: number;
  readonly chunks: number;
  readonly findings: readonly Finding[];
}

/** An uploaded file as the store records it. */
export type KnownUpload = Pick<StoredFile, "token" | "name" | "sizeBytes" | "sha256">;

export interface AccountKey extends KeyRecord {
  /** Name of the account. */
  readonly account: string;
}

/** Numbers of keys that were restricted. */
export interface RestrictedKeys {
  readonly revoked: number;
  /** Keys that got an earlier expiry. */
  readonly endEarlier: number;
  /** Keys that lost scopes. */
  readonly narrowed: number;
}
