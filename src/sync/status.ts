import { existsSync } from "node:fs";
import { openFiles, type SkippedFile, type TroubledFile } from "./ledger/files.ts";
import { ledgerFile, type Ledger } from "./ledger/ledger.ts";
import { openSqlite } from "./ledger/open.ts";
import { openOperator } from "./ledger/operator.ts";
import { openSources, type SourceRow, type Sources } from "./ledger/sources.ts";
import type { SourceActivity } from "./source.ts";

export type { SkippedFile, TroubledFile } from "./ledger/files.ts";

/** How far one source is in agreement. Counts are of files. */
export interface SourceStatus {
  readonly path: string;
  readonly ownerId: string;
  /** Null until the service told it. */
  readonly collectionId: string | null;
  /** Files that are wanted and there: in agreement, waiting or failed. */
  readonly files: number;
  readonly inAgreement: number;
  readonly waiting: number;
  /** Files that the service will not take, and deletes that it will not do; these are not among `files`. */
  readonly failed: number;
  /** Files that are left out, empty or of no kind that is taken; not among `files`. */
  readonly skipped: number;
  /** Deletes that wait for a person. */
  readonly held: number;
  /** Why deletes are held, or why the whole source stands still; null when neither. */
  readonly holdReason: string | null;
  /** The folder is missing or another one: nothing is sent for it. */
  readonly halted: boolean;
  /** Folders and files that could not be looked at. */
  readonly unreadable: number;
  /** Why some changes are found late; null while all are seen. */
  readonly degraded: string | null;
  /** A person said that nothing is to be sent for it. */
  readonly paused: boolean;
}

/** A source that left the configuration: nothing is done for it, and its resources stay until a person agrees. */
export interface RemovedStatus {
  readonly path: string;
  readonly ownerId: string;
  readonly collectionId: string | null;
  /** Resources that it still has at the service. */
  readonly resources: number;
  /** A person agreed to their end. */
  readonly approved: boolean;
}

/** What the status of a source is told from, beside the ledger. */
export interface StatusSource {
  readonly id: number;
  /** Default: the ledger's row of that number. */
  readonly row?: SourceRow;
  activity(): SourceActivity;
}

/** Status of a daemon's sources, from the ledger and from what each is doing. */
export function statusOf(
  ledger: Ledger,
  sources: readonly StatusSource[],
  degraded: (source: number) => string | undefined,
): SourceStatus[] {
  ledger.flush();
  const paused = ledger.operator.paused();
  return sources.map((source) => {
    const row = source.row ?? ledger.sources.get(source.id);
    const { backlog, backlogAgreed } = source.activity();
    const collectionId = ledger.sources.collectionId(row.tier);
    const now = { ...row, backlog, backlogAgreed, degraded: degraded(source.id) ?? null };
    return sourceStatus(now, collectionId, paused.has(row.id));
  });
}

/** Sources that left the configuration and still have resources. */
export function removedOf(sources: Sources): RemovedStatus[] {
  return sources.removed().map(({ path, ownerId, tier, kept, approved }) => ({
    path,
    ownerId,
    collectionId: sources.collectionId(tier) ?? null,
    resources: kept,
    approved,
  }));
}

/**
 * Status from a state folder alone, while a daemon may or may not be running on it. At most `filesLimit` files are named
 * in each list. Undefined: there is no ledger yet.
 * Throws as `openSqlite` does.
 */
export function readStatus(
  stateDir: string,
  filesLimit: number,
):
  | {
      readonly sources: readonly SourceStatus[];
      readonly removed: readonly RemovedStatus[];
      readonly troubled: readonly TroubledFile[];
      readonly skipped: readonly SkippedFile[];
    }
  | undefined {
  const file = ledgerFile(stateDir);
  if (!existsSync(file)) return undefined;
  const db = openSqlite(file, { readonly: true });
  try {
    const sources = openSources(db);
    const files = openFiles(db);
    const paused = openOperator(db).paused();
    return {
      sources: sources
        .active()
        .map((row) => sourceStatus(row, sources.collectionId(row.tier), paused.has(row.id))),
      removed: removedOf(sources),
      troubled: files.troubled(filesLimit),
      skipped: files.skipped(filesLimit),
    };
  } finally {
    db.close();
  }
}

function sourceStatus(row: SourceRow, collectionId: string | undefined, paused: boolean): SourceStatus {
  const inAgreement = Math.max(0, row.agreed - row.backlogAgreed);
  // Parked and unsure rows are waiting too; those in the backlog are counted there.
  const waiting = Math.max(row.backlog, row.parked + row.unsure);
  return {
    path: row.path,
    ownerId: row.ownerId,
    collectionId: collectionId ?? null,
    files: inAgreement + waiting + row.failed,
    inAgreement,
    waiting,
    failed: row.failed + row.deletesRefused,
    skipped: row.skipped,
    held: row.held > 0 || row.halted === null ? row.held : row.agreed,
    holdReason: row.lost ?? row.halted ?? row.holdReason,
    halted: row.lost !== null || row.halted !== null,
    unreadable: row.unreadable,
    degraded: row.degraded,
    paused,
  };
}
