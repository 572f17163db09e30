/**
 * Removal of everything that the store holds of a document. Promises:
 *
 * - After `eraseResources` no method returns anything of the resources, neither their records nor what was made from them.
 * - Each method may be repeated after a crash, and then removes what is left.
 */
export interface ErasureRecords {
  /** Ids of up to `limit` resources of an owner, live or deleted. */
  resourcesOf(query: OwnerKey & { readonly limit: number }): Promise<readonly string[]>;
  /**
   * Removes resources, live or deleted, with their records, notes of requests about them, and the turns of threads from the first
   * whose answer was given a passage of one. Webhook messages about them keep their ids alone; those with answers made from them
   * are removed. Live ones are reported as deleted, without their titles. Their changes lose
   * path and digest, and with `hidesOwner` the owner. Unknown ones count as removed before.
   */
  eraseResources(erasure: Erasure): Promise<Erased>;
  /** Removes the name of an owner that has no resources any more. */
  eraseOwner(at: OwnerKey): Promise<void>;
  /**
   * Tokens of the account's files that the erased resources released, or that nothing used since `beforeIso` and no resource ever
   * released.
   */
  filesToErase(
    query: Pick<OwnerKey, "accountId"> & {
      readonly resourceIds: readonly string[];
      readonly beforeIso: string;
    },
  ): Promise<readonly string[]>;
  /** Removes the record of a file and the note of its upload. Returns false if something uses the file, or it is gone. */
  eraseFile(token: string): Promise<boolean>;
}

export interface OwnerKey {
  readonly accountId: string;
  readonly ownerId: string;
}

export interface Erasure {
  readonly accountId: string;
  readonly ids: readonly string[];
  /** Webhook messages about the resources lose the name of their owner too. */
  readonly hidesOwner: boolean;
  readonly nowIso: string;
}

/** The counts of an erasure. */
export interface Erased {
  /** Records of resources, live or deleted. */
  readonly documents: number;
  readonly chunks: number;
  /** Notes of requests, for their repetition. */
  readonly requests: number;
  /** Webhook messages that were removed or lost a title. */
  readonly messages: number;
  /** Questions of threads with their answers. */
  readonly turns: number;
  /** Images of threads. */
  readonly images: number;
  /** Turns of the account's threads from older releases, which do not say what their answers were made from. */
  readonly unknownTurns: number;
}
