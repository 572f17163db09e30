import type { KbsyncError } from "../../lib/failure.ts";
import type { Queue } from "../queue/queue.ts";
import type { Claims } from "../queue/claims.ts";
import type { TokenBuckets } from "./token-buckets.ts";
import type { Notices } from "./notices.ts";
import type { Index } from "./search-index.ts";
import type { Records } from "./records.ts";

/** The ports to one database. */
export interface Ports {
  readonly records: Records;
  readonly queue: Queue;
  readonly index: Index;
}

/** The storage of the service. */
export interface Store extends Ports {
  /** Undefined: one process at a time uses the store. */
  readonly claims?: Claims | undefined;
  /** Rates that the processes of the store share. Undefined: one process at a time uses it, and counts for itself. */
  readonly buckets?: TokenBuckets | undefined;
  /** Reads the clock of the database, which the processes that use the store share. Undefined: one process at a time uses it. */
  readonly clockMs?: ((this: void) => Promise<number>) | undefined;
  /** Announcements between the processes that use the store. Undefined: there is one process at a time. */
  readonly notices?: Notices;
  /** Why a part of the store does not work at present; it may recover by itself. Undefined: all parts work. */
  problem(this: void): KbsyncError | undefined;
  /**
   * Leaves nothing in the store's files of what was removed before, not in free space, in the log or in the index of words.
   * Writes wait for the last step, which takes space for a second copy of the store. Throws `disk_full`, and `store_busy` if a
   * long read prevents it; a repetition completes it. A database server frees space by itself: there this rewrites the account's part
   * of the index of words alone, and what was removed stays in free space until the next vacuum, and in the log and the backups as
   * long as their operator keeps them.
   */
  scrub(this: void, accountId: string): Promise<void>;
  /** Resolves after every started write has succeeded or failed. */
  close(): Promise<void>;
}
