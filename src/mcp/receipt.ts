import { z } from "zod";
import { Count } from "../wire/primitives.ts";
import type { SearchFallback } from "../wire/search.ts";
import {
  CITED_MAX,
  type DocumentReceipt,
  type FolderReceipt,
  type LedgerReceipt,
  type LedgerReceiptRequest,
  type Receipt,
} from "../wire/receipt.ts";

/**
 * How fresh the answer of a tool is: the receipt of the service in few tokens. Counts are of all folders together, and absent if
 * they are 0.
 */
export const AnswerReceipt = z.object({
  current: z.boolean().describe("Nothing is known to be missing."),
  as_of: z
    .string()
    .nullable()
    .describe("Changes saved before are searchable, except what is counted; null: unknown."),
  pending: Count.optional().describe("Files on their way."),
  failed: Count.optional(),
  held: Count.optional().describe("Deleted files that are still found."),
  unreadable: Count.optional(),
  documents_waiting: Count.optional().describe("Documents that are being read."),
  documents_failed: Count.optional(),
  chunks_without_vectors: Count.optional().describe("Passages not found by meaning yet."),
  folders_unknown: z
    .literal(true)
    .optional()
    .describe(
      "No daemon answers: whether files were changed since is unknown, and current does not speak of it.",
    ),
  gave_up: z.enum(["timeout", "busy"]).optional().describe("Why freshness current waited no longer."),
});
export type AnswerReceipt = z.infer<typeof AnswerReceipt>;

/** Returns the short form of a receipt. */
export function answerReceipt({
  current,
  folders,
  foldersUnknown,
  documents,
  gaveUp,
}: Receipt): AnswerReceipt {
  const sum = (count: "pending" | "failed" | "held" | "unreadable"): number =>
    folders.reduce((total, each) => total + each[count], 0);
  // ISO times sort as text.
  const oldest = folders.toSorted((a, b) => ((a.asOf ?? "") < (b.asOf ?? "") ? -1 : 1))[0]?.asOf;
  const counts = {
    pending: sum("pending"),
    failed: sum("failed"),
    held: sum("held"),
    unreadable: sum("unreadable"),
    documents_waiting: documents?.waiting ?? 0,
    documents_failed: documents?.failed ?? 0,
    chunks_without_vectors: documents?.withoutVectors ?? 0,
  };
  return {
    current,
    as_of: oldest ?? null,
    ...Object.fromEntries(Object.entries(counts).filter(([, count]) => count > 0)),
    ...(foldersUnknown && { folders_unknown: true }),
    ...(gaveUp !== undefined && { gave_up: gaveUp }),
  };
}

/** Joins the receipts of answers that are shown together; undefined if one has none. */
export function joinReceipts(receipts: readonly (Receipt | undefined)[]): Receipt | undefined {
  const known = receipts.filter((each) => each !== undefined);
  if (known.length === 0 || known.length < receipts.length) return undefined;
  const gaveUp = known.find((each) => each.gaveUp !== undefined)?.gaveUp;
  const sum = (count: keyof DocumentReceipt): number =>
    known.reduce((total, { documents }) => total + (documents?.[count] ?? 0), 0);
  return {
    current: known.every(({ current }) => current),
    folders: [
      ...new Map(known.flatMap(({ folders }) => folders).map((each) => [each.folder, each])).values(),
    ],
    ...(known.some(({ foldersUnknown }) => foldersUnknown) && { foldersUnknown: true }),
    documents: { waiting: sum("waiting"), failed: sum("failed"), withoutVectors: sum("withoutVectors") },
    changed: [...new Set(known.flatMap(({ changed }) => changed))],
    ...(gaveUp !== undefined && { gaveUp }),
  };
}

/** Asks the daemon of a state folder; without one, its ledger. Undefined: there is no ledger. */
export type AskLedger = (
  request: LedgerReceiptRequest,
  signal: AbortSignal,
) => Promise<LedgerReceipt | undefined>;

/** A client's demands on its answers. */
export interface FreshQuestion {
  /** The folders that the question covers; undefined: all. */
  readonly scopes?: LedgerReceiptRequest["scopes"];
  /** Waits so long at most for what was saved before. Undefined: does not wait. */
  readonly waitSeconds?: number | undefined;
  readonly signal: AbortSignal;
}

/**
 * Asks a service, and completes the receipt of its answer with what is known here, if the service knows no folder: what it asks before
 * claims no more than the answer can see. `send` gets the seconds that are left of the wait. `read` returns the receipt of the
 * service, if it gives any, and the documents that the answer cites.
 */
export async function askWithReceipt<T>(
  askLedger: AskLedger | undefined,
  { scopes, waitSeconds, signal }: FreshQuestion,
  send: (waitSeconds: number | undefined) => Promise<T>,
  read: (answer: T) => { readonly receipt: Receipt | undefined; readonly cited: readonly string[] },
): Promise<{ readonly answer: T; readonly receipt: Receipt }> {
  const startMs = performance.now();
  const question = { ...(scopes !== undefined && { scopes }), cited: [] };
  const here = await askLedger?.({ ...question, ...(waitSeconds !== undefined && { waitSeconds }) }, signal);
  const spentSeconds = (performance.now() - startMs) / 1000;
  const answer = await send(waitSeconds && Math.max(1, waitSeconds - spentSeconds));
  const { receipt, cited } = read(answer);
  if (receipt !== undefined && receipt.folders.length > 0) return { answer, receipt };
  const documents = [...new Set(cited)].slice(0, CITED_MAX);
  const after =
    documents.length === 0 ? undefined : await askLedger?.({ scopes: [], cited: documents }, signal);
  const folders = [...(here?.folders ?? [])];
  const isKnown = receipt !== undefined || folders.length > 0;
  const current = isKnown && receipt?.current !== false && folders.every((each) => each.current);
  const isLate = !current && waitSeconds !== undefined && spentSeconds >= waitSeconds;
  const gaveUp = receipt?.gaveUp ?? (isLate ? "timeout" : undefined);
  const changed = [...(after?.changed ?? [])];
  const { foldersUnknown: _, ...rest } = receipt ?? {};
  // A ledger knows its folders without a daemon, and says of each that none runs.
  const isUnknown = here === undefined && (receipt === undefined || receipt.foldersUnknown === true);
  const unknown = isUnknown && { foldersUnknown: true as const };
  return { answer, receipt: { ...rest, current, folders, ...unknown, changed, ...(gaveUp && { gaveUp }) } };
}

/** States what is wrong with the freshness of an answer, each in a few words; empty if nothing is. */
function receiptWords(receipt: Receipt, isFresh: boolean): string[] {
  const { current, folders, foldersUnknown, documents, changed, gaveUp } = receipt;
  const sum = (count: "pending" | "failed" | "held" | "unreadable"): number =>
    folders.reduce((total, each) => total + each[count], 0);
  const { waiting = 0, failed = 0, withoutVectors = 0 } = documents ?? {};
  const words: readonly (readonly [count: number, one: string, many: string])[] = [
    [sum("pending"), "file is waiting to be sent", "files are waiting to be sent"],
    [sum("failed"), "file failed", "files failed"],
    [sum("held"), "deleted file is still found", "deleted files are still found"],
    [sum("unreadable"), "file or folder could not be read", "files or folders could not be read"],
    [waiting, "document is being read", "documents are being read"],
    [failed, "document could not be read", "documents could not be read"],
    [withoutVectors, "passage is not found by meaning yet", "passages are not found by meaning yet"],
    [changed.length, "cited file has changed or is gone", "cited files have changed or are gone"],
  ];
  const has = (noticing: FolderReceipt["noticing"]): boolean =>
    folders.some((each) => each.noticing === noticing);
  const states = [
    ...(has("paused") ? ["a folder is paused"] : []),
    ...(has("halted") ? ["a folder is halted: see `kbsync status`"] : []),
    ...(isFresh && !current && has("stopped") ? ["no daemon runs, so newer changes are unknown"] : []),
    ...(isFresh && foldersUnknown
      ? ["no daemon answers here, so changes of synced folders are unknown"]
      : []),
    ...(gaveUp === "timeout" ? ["the wait was too short"] : []),
    ...(gaveUp === "busy" ? ["too many questions wait already"] : []),
  ];
  return [
    ...words
      .filter(([count]) => count > 0)
      .map(([count, one, many]) => `${count} ${count === 1 ? one : many}`),
    ...states,
  ];
}

/**
 * States what is wrong with the freshness of an answer in a line; undefined: nothing is. `fallback` is stated by itself, and says
 * already that nothing was found by meaning.
 */
export function receiptLine(
  receipt: Receipt,
  isFresh: boolean,
  fallback?: SearchFallback,
): string | undefined {
  const { documents, ...rest } = receipt;
  const counts = documents && { ...documents, ...(fallback === "words" && { withoutVectors: 0 }) };
  const words = receiptWords({ ...rest, documents: counts }, isFresh);
  return words.length === 0 ? undefined : `Not everything here is up to date: ${words.join(", ")}.`;
}
