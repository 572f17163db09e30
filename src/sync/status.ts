import { existsSync } from "node:fs";
import { openFiles, type SkippedFile, type TroubledFile } from "./ledger/files.ts";
import { ledgerFile, type Ledger } from "./ledger/ledger.ts";
import { openSqlite } from "./ledger/open.ts";
import { openSources, type SourceRow } from "./ledger/sources.ts";
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
  return sources.map((source) => {
    const row = source.row ?? ledger.sources.get(source.id);
    const { backlog, backlogAgreed } = source.activity();
    const collectionId = ledger.sources.collectionId(row.tier);
    const now = { ...row, backlog, backlogAgreed, degraded: degraded(source.id) ?? null };
    return sourceStatus(now, collectionId);
  });
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
    return {
      sources: sources.active().map((row) => sourceStatus(row, sources.collectionId(row.tier))),
      troubled: files.troubled(filesLimit),
      skipped: files.skipped(filesLimit),
    };
  } finally {
    db.close();
  }
}

function sourceStatus(row: SourceRow, collectionId: string | undefined): SourceStatus {
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
    holdReason: row.holdReason,
    halted: row.halted !== null,
    unreadable: row.unreadable,
    degraded: row.degraded,
  };
}
