import type { AccountRecords } from "./accounts.ts";
import type { ChatRecords } from "./chat.ts";
import type { ErasureRecords } from "./erasure.ts";
import type { FileRecords } from "./files.ts";
import type { RequestRecords } from "./request-note.ts";
import type { ResourceRecords } from "./resources.ts";
import type { WebhookRecords } from "./webhooks.ts";

/**
 * The records of the service, by theme. Each method is one transaction.
 * Promises (one contract suite, run on every implementation):
 *
 * - A write is durable when its promise resolves, and visible to every read started afterwards.
 * - Accounts are isolated: every read and write of a resource or file names the account and sees only its data.
 * - A write indexes the chunks that it stores (`Index`), and puts the jobs that follow from it into the queue, in its own
 *   transaction. So it does with the contents of `SameTransaction`.
 * - Reads never wait for writes.
 */
export interface Records
  extends
    AccountRecords,
    ChatRecords,
    ErasureRecords,
    FileRecords,
    RequestRecords,
    ResourceRecords,
    WebhookRecords {}
