import type { BatchKind } from "../../wire/batch.ts";
import type { ResourceKey } from "./resources.ts";
import type { SameTransaction } from "./request-note.ts";

/**
 * Work on many documents that continues after its request. A document of a batch is pending until its outcome is stored; a batch whose
 * documents are all settled is done.
 */
export interface BatchRecords {
  /** Removes the oldest batches that ended, all but `keptMax`. Throws `too_many_batches` if `openMax` of the account work. */
  addBatch(batch: NewBatch, sameTransaction?: Pick<SameTransaction, "request">): Promise<void>;
  /** The batches of the account, newest first. */
  batches(accountId: string): Promise<readonly StoredBatch[]>;
  batch(at: ResourceKey): Promise<StoredBatch | undefined>;
  /** The first failures of a batch, in the order of its documents. */
  batchFailures(query: ResourceKey & { readonly limit: number }): Promise<readonly BatchFailure[]>;
  /** Returns false if the account has no such batch. Stops nothing of a batch that is done. */
  stopBatch(at: ResourceKey & { readonly nowIso: string }): Promise<boolean>;
  /** The batches of all accounts that work, those first that did so longest ago. */
  openBatches(): Promise<readonly OpenBatch[]>;
  /** The next documents of a batch that works, in their order. */
  pendingItems(query: OpenBatch & { readonly limit: number }): Promise<readonly BatchItem[]>;
  /** Settles documents; a repetition changes nothing. */
  settleItems(
    settled: OpenBatch & { readonly nowIso: string; readonly outcomes: readonly BatchOutcome[] },
  ): Promise<void>;
}

export interface NewBatch extends ResourceKey {
  readonly kind: BatchKind;
  /** Ids of resources, each once. */
  readonly resourceIds: readonly string[];
  readonly nowIso: string;
  readonly openMax: number;
  readonly keptMax: number;
}

/** A batch as its request is answered. */
export interface AcceptedBatch {
  readonly id: string;
  readonly kind: BatchKind;
  readonly total: number;
  readonly createdAt: string;
}

export interface OpenBatch extends ResourceKey {
  readonly number: number;
  readonly kind: BatchKind;
}

export interface StoredBatch {
  readonly id: string;
  readonly kind: BatchKind;
  readonly isStopped: boolean;
  readonly total: number;
  readonly pending: number;
  readonly failed: number;
  readonly createdAt: string;
  readonly updatedAt: string;
}

export interface BatchItem {
  readonly position: number;
  readonly resourceId: string;
}

export interface BatchOutcome {
  readonly position: number;
  /** Undefined: it succeeded. */
  readonly failure?: { readonly code: string; readonly message: string };
}

export interface BatchFailure {
  readonly resourceId: string;
  /** Null: the resource is deleted. */
  readonly title: string | null;
  readonly code: string;
  readonly message: string;
}
