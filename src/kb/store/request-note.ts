import type { Lease } from "../queue/queue.ts";
import type { ThreadLink } from "./records.ts";

/**
 * The request a write was made for. It is noted in the transaction of that write, so that a repeated request finds both
 * or neither: no crash lets a retry make a second resource.
 */
export interface RequestNote {
  /** The `Idempotency-Key`; an account's own. */
  readonly key: string;
  /** SHA-256 of what was asked for. */
  readonly bodySha256: string;
  /** Status of the answer. */
  readonly status: number;
  readonly nowMs: number;
}

/** What goes into the transaction of a write besides the write itself. */
export interface Alongside {
  readonly request?: RequestNote;
  /** The lease of the job whose work this write is: the job ends with it. Throws `lease_lost`. */
  readonly job?: Lease;
  /** The thread a file belongs to. */
  readonly thread?: ThreadLink;
}

/** What a request did, for as long as it may be repeated: 24 hours. */
export interface StoredAnswer {
  /** SHA-256 of the request the answer belongs to. */
  readonly bodySha256: string;
  readonly status: number;
  /**
   * JSON text of what was written: `{"resource": …}` as it was then, `{"resourceId": …}` where that is long, `{"file": …}`, or
   * `{"messageId": …}` of a question. A store of an earlier version may hold whole answers, and ids behind the word `resource`.
   */
  readonly body: string;
}
