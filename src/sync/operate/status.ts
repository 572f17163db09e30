import type { FolderWarning, RemovedStatus, SourceStatus } from "../../wire/daemon-status.ts";
import { approvalsOf } from "./approve.ts";
import { openForReading, type OperatorLedger } from "./offline.ts";
import type { ListedFile } from "../../wire/daemon-files.ts";
import type { LeftOut } from "../../wire/daemon-folders.ts";
import type { SourceRow } from "../ledger/sources/rows.ts";
import type { Sources } from "../ledger/sources/sources.ts";
import type { RelativePath } from "../plan/model.ts";
import type { SourceSync } from "../daemon/source/source.ts";
import { blockersOf } from "../ledger/blockers.ts";
import { countVersions, withWork } from "../plan/version.ts";
import { listFiles } from "./listed-files.ts";

/** Maximum number of listed unreadable paths. */
const UNREADABLE_NAMED = 100;

/** Returns the status of a daemon's sources, from the ledger and from their current work. */
export function statusOf(
  ledger: OperatorLedger,
  sources: readonly SourceSync[],
  degraded: (source: number) => string | undefined,
): SourceStatus[] {
  ledger.flush();
  return sources.map((source) => {
    const row = ledger.sources.get(source.id);
    const { reading, backlogFailed, ...now } = withWork(row, source.activity());
    const facts = {
      reading,
      backlogFailed,
      unreadable: source
        .unreadable(undefined)
        .map(({ path }) => path)
        .toSorted(),
      warnings: source.warnings(),
      leftOut: source.passes.memory.leftOut,
      degraded: degraded(source.id) ?? null,
    };
    return sourceStatus(ledger, { ...now, compared: source.isPlanned() }, facts);
  });
}

/** Returns the status of sources by their rows alone. */
export function storedStatus(ledger: OperatorLedger, rows: readonly SourceRow[]): SourceStatus[] {
  return rows.map((row) => sourceStatus(ledger, row));
}

/** Sources that left the configuration and still have resources. */
export function removedOf(sources: Sources): RemovedStatus[] {
  return sources.removed().flatMap((row) =>
    approvalsOf(sources, [row]).map((approval) => ({
      path: row.path,
      ownerId: row.ownerId,
      collectionId: sources.collectionId(row.tier) ?? null,
      resources: row.resources,
      approved: row.approved,
      approval,
    })),
  );
}

/**
 * Reads the status from a state folder alone; a daemon may be running. Each list names at most `filesLimit` files.
 * Undefined: there is no ledger yet. Throws as `openSqlite` does.
 */
export function readStatus(
  stateDir: string,
  filesLimit: number,
):
  | {
      readonly sources: readonly SourceStatus[];
      readonly removed: readonly RemovedStatus[];
      readonly troubled: readonly ListedFile[];
      readonly skipped: readonly ListedFile[];
    }
  | undefined {
  const open = openForReading(stateDir);
  if (open === undefined) return undefined;
  const { ledger } = open;
  try {
    return {
      sources: storedStatus(ledger, ledger.sources.active()),
      removed: removedOf(ledger.sources),
      troubled: listFiles(ledger, { limit: filesLimit }),
      skipped: listFiles(ledger, { state: "skipped", limit: filesLimit }),
    };
  } finally {
    open.close();
  }
}

/** Facts that only a process that has scanned the source knows. */
interface ScanFacts {
  readonly reading: number;
  readonly backlogFailed: number;
  readonly unreadable: readonly RelativePath[];
  readonly warnings: readonly FolderWarning[];
  readonly leftOut: readonly LeftOut[];
  /** Why some changes are found late. */
  readonly degraded: string | null;
}

const NOTHING_SCANNED: ScanFacts = {
  reading: 0,
  backlogFailed: 0,
  unreadable: [],
  warnings: [],
  leftOut: [],
  degraded: null,
};

/** Returns the status of a source by its row. */
function sourceStatus(
  { sources }: OperatorLedger,
  row: SourceRow,
  { reading, backlogFailed, unreadable, warnings, leftOut, degraded }: ScanFacts = NOTHING_SCANNED,
): SourceStatus {
  const [blocker] = blockersOf(row);
  const isHalted = row.lost !== null || row.halted !== null;
  return {
    path: row.path,
    tier: row.tier,
    ownerId: row.ownerId,
    collectionId: sources.collectionId(row.tier) ?? null,
    ...countVersions({ ...row, reading, backlogFailed, isHalted }),
    compared: row.compared,
    deletesRefused: row.deletesRefused,
    skipped: row.skipped,
    readInPart: row.readInPart,
    held: row.held,
    kept: row.kept,
    holdReason: row.lost ?? row.halted ?? row.holdReason,
    halted: isHalted,
    remedy: blocker?.remedy ?? null,
    approval: approvalsOf(sources, [row])[0] ?? null,
    unreadable: row.unreadable,
    unreadablePaths: unreadable.slice(0, UNREADABLE_NAMED),
    warnings,
    leftOut,
    degraded,
    paused: row.paused,
  };
}
