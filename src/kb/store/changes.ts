import type { ResourceStatus } from "./resources.ts";

/** A change of a document. */
export type ChangeKind = "created" | "updated" | "deleted";

/** One change of a document, with its state after the change. */
export interface DocumentChange {
  /** Continues after this change. */
  readonly cursor: string;
  readonly kind: ChangeKind;
  readonly resourceId: string;
  readonly collectionId: string;
  readonly ownerId: string;
  /** ISO time. */
  readonly at: string;
  readonly version: number;
  readonly revision: number;
  readonly status: ResourceStatus | "deleted";
  /** SHA-256 of the text as UTF-8, 64 hex digits; null without a text. */
  readonly sha256: string | null;
  /** The string `path` of the metadata; null if there is none. */
  readonly path: string | null;
}

/** A page of an account's changes. */
export interface ChangesQuery {
  readonly accountId: string;
  /** The page starts after this one; undefined: at the oldest change that is stored. */
  readonly cursor: string | undefined;
  readonly limit: number;
}

export interface ChangesPage {
  /** In the order of the changes. */
  readonly changes: readonly DocumentChange[];
  /** Continues after the page. */
  readonly cursor: string;
  /** Whether there are changes after the page. */
  readonly more: boolean;
}

/** The changes of documents. They are written by the transactions that make them. */
export interface ChangeRecords {
  /**
   * Returns changes in the order in which they were committed. Undefined: the changes after the cursor are no longer
   * stored, or it is not one of this store, as after a restore of a backup.
   */
  changes(query: ChangesQuery): Promise<ChangesPage | undefined>;
  /** Returns the cursor after all changes of the account. */
  newestCursor(accountId: string): Promise<string>;
  /** Removes up to `limit` changes that are from before `beforeIso`, or that their account has too many of. Returns how many. */
  purgeChanges(beforeIso: string, limit: number): Promise<number>;
}
