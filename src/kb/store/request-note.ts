import type { Lease } from "../queue/queue.ts";
import type { ThreadLink } from "./thread-link.ts";

/** Results of requests, for their repetition. */
export interface RequestRecords {
  /**
   * The result of the request noted under an idempotency key; undefined after 24 h. Until then a write with a note under the same key
   * throws `request_noted`, and does nothing.
   */
  recall(accountId: string, key: string, nowMs: number): Promise<StoredAnswer | undefined>;
  /** Removes up to `limit` of these results older than 24 hours. Returns how many. */
  sweepAnswers(nowMs: number, limit: number): Promise<number>;
}

/**
 * The request that a write carries out. The write and its note share a transaction, so a repeated request finds both or
 * neither: no crash lets a retry create a second resource.
 */
export interface RequestNote {
  /** The `Idempotency-Key`. Each account has its own keys. */
  readonly key: string;
  /** SHA-256 of the request. */
  readonly bodySha256: string;
  /** HTTP status of the answer. */
  readonly status: number;
  readonly nowMs: number;
}

/** Why a job of a document failed. */
export interface Failure {
  readonly code: string;
  readonly message: string;
}

/** Rows that the transaction of a write also writes. */
export interface SameTransaction {
  readonly request?: RequestNote;
  /** The lease of the job that makes this write: the write ends the job. Throws `lease_lost`. */
  readonly job?: Lease;
  /** Why the job failed. The write changes what does not depend on its text; see `ResourceRecords.failJob`. */
  readonly failure?: Failure;
  /** The job goes on: it writes the text again when it is whole. The resource is `chunked` meanwhile. Default: false. */
  readonly isPart?: boolean;
  /** The thread that a file belongs to. */
  readonly thread?: ThreadLink;
}

/** The outcome of a request. Available for 24 hours, as long as the request may be repeated. */
export interface StoredAnswer {
  /** SHA-256 of the request. */
  readonly bodySha256: string;
  readonly status: number;
  /**
   * JSON text of what was written: `{"resource": …}` as it was then, `{"resourceId": …}` if the resource is long,
   * `{"file": …}` or `{"messageId": …}` for a question.
   */
  readonly body: string;
}
