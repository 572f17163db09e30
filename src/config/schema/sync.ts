import { z } from "zod";

/** Schema of `sync` in the configuration. */
export const SyncSection = z.strictObject({
  // Fewer would leave nothing for recent changes or deletes while files wait.
  requestsPerMinute: z
    .int()
    .min(3)
    .max(1_000_000)
    .optional()
    .describe(
      "Most requests to the service in any 60 seconds, over all sources. A tenth is reserved for recent changes, one for other documents, one for lists, reads and deletes. Default: unlimited.",
    ),
  holdDeletesOver: z
    .int()
    .min(0)
    .default(50)
    .describe(
      "Deletes within ten minutes that exceed both this and 20 % of the folder's files are held until a person approves. In a folder of fewer than twice as many files the limit is half of its files, but at least 10.",
    ),
  trashDays: z
    .number()
    .min(0)
    .max(3650)
    .default(7)
    .describe(
      "Days for which the state folder retains the texts of deleted files for `kbsync undelete`; 0: never. Costs one more request per delete.",
    ),
});

/** Settings of a daemon, of which tests change more than the configuration can. */
export interface SyncConfig extends z.infer<typeof SyncSection> {
  /** Time without a change before a file is read. */
  readonly settleMs: number;
  /** Interval of comparisons of the whole folder with the ledger, which find changes without an event. */
  readonly rescanMinutes: number;
  /** Most files in flight to the service; lowered when the service asks. */
  readonly concurrency: number;
  /** Longest wait for one answer. */
  readonly requestTimeoutMs: number;
  /** Interval in which a daemon compares the ledger with the service's list; 0: never. */
  readonly auditHours: number;
  /** Share of a folder's files that deletes must exceed to be held. */
  readonly holdDeletesPercent: number;
  /** Whether a file in which a rule finds a secret is held back. */
  readonly blockSecrets?: boolean;
}

/** What no configuration changes. */
export const SYNC_CONSTANTS = {
  /** Longer than the gap between an editor's writes. */
  settleMs: 150,
  /** A safety net: where the system reports no changes, or not all, the folder is compared every 15 seconds. */
  rescanMinutes: 60,
  /** A large PDF takes a while to process. */
  requestTimeoutMs: 120_000,
  /** A service without pagination sends all texts for it. */
  auditHours: 24,
  /** Below it, deletes are the ordinary tidying of a folder. */
  holdDeletesPercent: 20,
} as const;

/**
 * Number of files in flight. On loopback each transaction of the service takes all that waits, so more in flight means fewer
 * flushes: 20,000 files took 18 s with 24, 10 s with 128. A hosted service has other customers.
 */
export const CONCURRENCY_EMBEDDED = 128;
export const CONCURRENCY_HOSTED = 16;
