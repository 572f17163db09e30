import { z } from "zod";
import { Count } from "./primitives.ts";

/** Time that a search waits by default for what was saved before the question, in seconds; people wait so long. */
export const FRESH_SECONDS_DEFAULT = 10;
/** Longest such wait: proxies and clients often give up after a minute. */
export const FRESH_SECONDS_MAX = 50;

/** Fields of a question that ask for a fresh answer (additions). */
export const FreshnessFields = {
  /** `current`: waits until everything saved before the question is searchable, or the time is over. */
  freshness: z
    .enum(["current"])
    .optional()
    .describe(
      "current: waits until everything saved before the question is searchable; the receipt says whether it is.",
    ),
  wait_seconds: z
    .number()
    .positive()
    .max(FRESH_SECONDS_MAX)
    .optional()
    .describe(`Longest wait of freshness; by default ${FRESH_SECONDS_DEFAULT}.`),
};

/** How changes of a folder are noticed. */
const Noticing = z
  .enum(["watched", "scanned", "paused", "halted", "stopped"])
  .describe(
    "watched: changes are noticed within seconds. scanned: some only by the next scan. paused, halted: nothing is sent. stopped: no daemon runs.",
  );

/** The state of a synced folder that a question covers. Counts are of files. */
export const FolderReceipt = z
  .object({
    folder: z.string(),
    ownerId: z.string(),
    collectionId: z.string(),
    asOf: z
      .string()
      .nullable()
      .describe(
        "Changes saved before this time are searchable, except the files counted here. Null: unknown.",
      ),
    current: z.boolean(),
    pending: Count.describe("Waiting to be sent, or being sent."),
    failed: Count.describe("Refused by the service, or not convertible; deletes that it refuses count too."),
    held: Count.describe(
      "Deleted files whose documents stay searchable until a person approves the deletes.",
    ),
    unreadable: Count.describe("Files and folders that could not be read."),
    noticing: Noticing,
  })
  .meta({ id: "FolderReceipt" });
export type FolderReceipt = z.infer<typeof FolderReceipt>;

/** The unfinished documents of a question's range at the service. */
export const DocumentReceipt = z.object({
  waiting: Count.describe("Documents whose latest text is not searchable yet."),
  failed: Count.describe("Documents whose latest text could not be read."),
  withoutVectors: Count.describe(
    "Chunks that are not searchable by meaning yet, counted up to 1000; 0 in fastest.",
  ),
});
export type DocumentReceipt = z.infer<typeof DocumentReceipt>;

/** How fresh an answer is (an addition). */
export const Receipt = z
  .object({
    current: z
      .boolean()
      .describe(
        "Nothing is known to be missing. With freshness current: everything saved before the question was searchable.",
      ),
    folders: z
      .array(FolderReceipt)
      .describe("Synced folders in what was asked. Empty: no folder is known, so only documents are judged."),
    foldersUnknown: z
      .literal(true)
      .optional()
      .describe(
        "No daemon answers here: whether files of synced folders were changed since is unknown, and current does not speak of it.",
      ),
    documents: DocumentReceipt.optional(),
    changed: z
      .array(z.string())
      .describe("Ids of cited documents whose file was changed or deleted since it was sent."),
    gaveUp: z
      .enum(["timeout", "busy"])
      .optional()
      .describe("Why freshness current did not wait any longer. busy: too many questions are waiting."),
  })
  .meta({ id: "Receipt" });
export type Receipt = z.infer<typeof Receipt>;

/** Most cited documents whose files are compared for one answer: as many as a search has results. */
export const CITED_MAX = 100;
/** Most scopes in one request. */
const SCOPES_MAX = 1000;

/** A question to a daemon about its folders. */
export const LedgerReceiptRequest = z.strictObject({
  /** The folders of these scopes, or of one document. Default: all folders. */
  scopes: z
    .array(
      z.union([
        z.strictObject({ collectionId: z.string(), ownerId: z.string() }),
        z.strictObject({ documentId: z.string() }),
      ]),
    )
    .max(SCOPES_MAX)
    .readonly()
    .optional(),
  /** Documents whose files are compared with what was sent. */
  cited: z.array(z.string()).max(CITED_MAX).readonly().default([]),
  /** Waits until everything saved before the request is acknowledged, so long at most. Default: does not wait. */
  waitSeconds: z.number().positive().max(FRESH_SECONDS_MAX).optional(),
});
export type LedgerReceiptRequest = z.infer<typeof LedgerReceiptRequest>;

/** The facts about folders, from a daemon or a ledger alone. */
export const LedgerReceipt = z
  .object({
    folders: z.array(FolderReceipt).readonly(),
    /** The cited documents whose file was changed or deleted since. */
    changed: z.array(z.string()).readonly(),
  })
  .readonly();
export type LedgerReceipt = z.infer<typeof LedgerReceipt>;
