import { z } from "zod";

/** Schema of `sync` in the configuration. */
export const SyncSection = z.strictObject({
  settleMs: z
    .int()
    .min(0)
    .max(60_000)
    .default(150)
    .describe(
      "Milliseconds without a change before a file is read. Longer than the gap between an editor's writes.",
    ),
  concurrency: z
    .int()
    .min(1)
    .max(256)
    .optional()
    .describe(
      "Most files in flight to the service; lowered automatically when the service asks. Default: 128 for the embedded service, whose writes share flushes to disk, 16 for a hosted one.",
    ),
  requestTimeoutMs: z
    .int()
    .min(1000)
    .max(3_600_000)
    .default(120_000)
    .describe("Longest wait for one answer, in milliseconds. A large PDF takes a while to process."),
  // One would leave nothing for deletes while files wait.
  requestsPerMinute: z
    .int()
    .min(2)
    .max(1_000_000)
    .optional()
    .describe(
      "Most requests to the service in any 60 seconds, over all sources. A tenth is reserved for lists, reads and deletes, a tenth for documents. Default: unlimited.",
    ),
  rescanMinutes: z
    .int()
    .min(1)
    .max(10_080)
    .default(60)
    .describe(
      "Interval of comparisons of the whole folder with the ledger, which find changes without an event.",
    ),
  auditHours: z
    .number()
    .min(0)
    .max(8760)
    .default(24)
    .describe(
      "Interval in which a running daemon compares the ledger with the service's list and repairs what others changed; 0: never. A service without pagination sends all texts for it.",
    ),
  holdDeletesOver: z
    .int()
    .min(0)
    .default(50)
    .describe(
      "Deletes within ten minutes that exceed both this and holdDeletesPercent are held until a person approves. In a folder of fewer than twice as many files the limit is half of its files, but at least 10.",
    ),
  holdDeletesPercent: z
    .number()
    .min(0)
    .max(100)
    .default(20)
    .describe(
      "Share of the folder's files that deletes must exceed to be held; 100: only deletes of an emptied folder are.",
    ),
  blockSecrets: z
    .boolean()
    .optional()
    .describe(
      "Send no text in which a rule finds a private key, a token or a password in an address; PDFs, images and mails that are sent as files are not read. Default: true if text leaves this machine: to a hosted service, or from the embedded one to a model or a database elsewhere or to other machines.",
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

/**
 * Default number of files in flight. On loopback each transaction of the service takes all that waits, so more in flight
 * means fewer flushes: 20,000 files took 18 s with 24, 10 s with 128. A hosted service has other customers.
 */
export const CONCURRENCY_EMBEDDED = 128;
export const CONCURRENCY_HOSTED = 16;
