import { statSync } from "node:fs";
import { join } from "node:path";
import type { SourceStatus } from "../../wire/daemon-status.ts";
import type { FolderReceipt, LedgerReceipt, LedgerReceiptRequest } from "../../wire/receipt.ts";
import type { Files } from "../ledger/files/files.ts";
import type { SourceRow } from "../ledger/sources/rows.ts";
import { blockersOf } from "../ledger/blockers.ts";
import type { KnownFile, RelativePath } from "../plan/model.ts";
import type { OperatorLedger } from "./offline.ts";
import { sourceStatus } from "./status.ts";

/** The part of a source that a question covers: all of it, or the file of one document. */
export interface CoveredSource {
  readonly row: SourceRow;
  readonly file: KnownFile | undefined;
}

/** The state of a covered source, or file, at one time. */
export interface CoveredState extends Pick<FolderReceipt, "noticing" | "current"> {
  readonly counts: Pick<FolderReceipt, "pending" | "failed" | "held" | "unreadable">;
  readonly asOfMs: number | undefined;
}

/** Finds what scopes cover, in the sources that are configured; without scopes, all of them. */
export function coveredBy(
  { sources, files }: Pick<OperatorLedger, "sources" | "files">,
  scopes: LedgerReceiptRequest["scopes"],
): CoveredSource[] {
  const rows = sources.active();
  if (scopes === undefined) return rows.map((row) => ({ row, file: undefined }));
  const covered = scopes.flatMap((scope): CoveredSource[] => {
    if ("documentId" in scope) {
      const file = files.byDoc(scope.documentId);
      const row = rows.find(({ id }) => id === file?.source);
      return row === undefined ? [] : [{ row, file }];
    }
    const isCovered = ({ ownerId, tier }: SourceRow): boolean =>
      ownerId === scope.ownerId && sources.collectionId(tier) === scope.collectionId;
    return rows.filter(isCovered).map((row) => ({ row, file: undefined }));
  });
  // Scopes may name a source twice.
  return [...new Map(covered.map((each) => [`${each.row.id} ${each.file?.id ?? ""}`, each])).values()];
}

/** Returns the receipt of a covered source. Undefined: the service has not named its collection, so nothing covers it. */
export function folderReceipt(
  { sources }: Pick<OperatorLedger, "sources">,
  { row }: CoveredSource,
  { counts, asOfMs, current, noticing }: CoveredState,
): FolderReceipt | undefined {
  const collectionId = sources.collectionId(row.tier);
  if (collectionId === undefined) return undefined;
  const asOf = asOfMs === undefined ? null : new Date(asOfMs).toISOString();
  return { folder: row.path, ownerId: row.ownerId, collectionId, asOf, current, ...counts, noticing };
}

/** Returns the counts of a source. */
export function sourceCounts({
  waiting,
  failed,
  held,
  unreadable,
}: Pick<SourceStatus, "waiting" | "failed" | "held" | "unreadable">): CoveredState["counts"] {
  return { pending: waiting, failed, held, unreadable };
}

/** Returns the counts of one file. */
export function fileCounts(
  { state }: Pick<KnownFile, "state">,
  isPending: boolean,
  unreadable = 0,
): CoveredState["counts"] {
  const isHeld = state === "held" || state === "doomed";
  return {
    pending: Number(isPending || state === "unsure" || state === "parked"),
    failed: Number(state === "failed"),
    held: Number(isHeld),
    unreadable,
  };
}

/**
 * Returns those of the documents whose file is not what was acknowledged, by its row and its times on disk, in the same order. Files
 * are not read. `isPending` reports whether work on a file is left.
 */
export function changedSince(
  { sources, files }: { readonly sources: OperatorLedger["sources"]; readonly files: Pick<Files, "byDoc"> },
  cited: readonly string[],
  isPending: (source: number, path: RelativePath) => boolean,
): string[] {
  const rows = new Map(sources.active().map((row) => [row.id, row]));
  return cited.filter((docId) => {
    const file = files.byDoc(docId);
    const row = file && rows.get(file.source);
    if (row === undefined || file === undefined) return false;
    if (file.state !== "agreed" || isPending(row.id, file.path)) return true;
    // Behind a folder that is missing or another one, nothing is known of the file.
    if (blockersOf(row).some(({ kind }) => kind !== "held")) return false;
    return !isAsAcknowledged(join(row.path, file.path), file);
  });
}

function isAsAcknowledged(path: string, file: KnownFile): boolean {
  try {
    const stats = statSync(path, { throwIfNoEntry: false });
    return stats?.size === file.sizeBytes && stats.mtimeMs === file.mtimeMs && stats.ctimeMs === file.ctimeMs;
  } catch {
    return false; // It cannot be checked, so nobody knows that it is the same.
  }
}

/** Returns what a ledger knows while no daemon runs on it. */
export function ledgerReceipt(
  ledger: OperatorLedger,
  { scopes, cited }: Pick<LedgerReceiptRequest, "scopes" | "cited">,
): LedgerReceipt {
  const folders = coveredBy(ledger, scopes).flatMap((covered) => {
    const { row, file } = covered;
    const counts =
      file === undefined ? sourceCounts(sourceStatus(ledger, row, false)) : fileCounts(file, false);
    const state = {
      counts,
      asOfMs: row.halted === null ? ledger.sources.asOfMs(row.id) : undefined,
      current: false,
      noticing: "stopped",
    } as const;
    return folderReceipt(ledger, covered, state) ?? [];
  });
  return { folders, changed: changedSince(ledger, cited, () => false) };
}
