import type { MountTrouble, RemovedStatus, SourceStatus } from "../../wire/daemon.ts";
import { approvalsOf } from "./approve.ts";
import { type OperatorLedger, readLedger } from "./offline.ts";
import type { SkippedFile, TroubledFile } from "../ledger/files.ts";
import type { RemovedSource, SourceRow, Sources } from "../ledger/sources.ts";
import type { RelativePath } from "../plan/model.ts";
import type { SourceActivity } from "../source/source.ts";
import { standstillsOf } from "../ledger/standstill.ts";

export type { SkippedFile, TroubledFile } from "../ledger/files.ts";

/** What the status of a source is told from, beside the ledger. */
export interface StatusSource {
  readonly id: number;
  /** Default: the ledger's row of that number. */
  readonly row?: SourceRow;
  activity(): SourceActivity;
  /** Whether the whole source was looked at. Default: yes. */
  isPlanned?(): boolean;
  /** What cannot be looked at, of one that looks. */
  unreadable?(below: undefined): readonly RelativePath[];
  mounts?(): readonly MountTrouble[];
}

/** Unreadable places that are named. */
const UNREADABLE_NAMED = 100;

/** Status of a daemon's sources, from the ledger and from what each is doing. */
export function statusOf(
  ledger: OperatorLedger,
  sources: readonly StatusSource[],
  degraded: (source: number) => string | undefined,
): SourceStatus[] {
  ledger.flush();
  const paused = ledger.operator.paused();
  return sources.map((source) => {
    const row = source.row ?? ledger.sources.get(source.id);
    const { backlog, backlogAgreed } = source.activity();
    const found = row.agreed - backlogAgreed + row.failed + row.parked + row.unsure + backlog;
    const compared = source.isPlanned?.() ?? true;
    const now = { ...row, backlogAgreed, found, compared, degraded: degraded(source.id) ?? null };
    const unreadable = source.unreadable?.(undefined) ?? [];
    const looked = { unreadable: unreadable.toSorted(), mounts: source.mounts?.() ?? [] };
    return sourceStatus(ledger, now, paused.has(row.id), looked);
  });
}

/** Sources that left the configuration and still have resources. */
export function removedOf(sources: Sources): RemovedStatus[] {
  return sources.removed().map((row) => ({
    path: row.path,
    ownerId: row.ownerId,
    collectionId: sources.collectionId(row.tier) ?? null,
    resources: row.kept,
    approved: row.approved,
    approvalToken: tokenIn(sources, row) ?? "",
  }));
}

function tokenIn(sources: Pick<Sources, "heldMark">, row: SourceRow | RemovedSource): string | null {
  return approvalsOf(sources, [row])[0]?.token ?? null;
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
  return readLedger(stateDir, (ledger) => {
    const paused = ledger.operator.paused();
    return {
      sources: ledger.sources.active().map((row) => sourceStatus(ledger, row, paused.has(row.id))),
      removed: removedOf(ledger.sources),
      troubled: ledger.files.troubled(filesLimit),
      skipped: ledger.files.skipped(filesLimit),
    };
  });
}

/** What only a process knows that has looked. */
interface Looked {
  readonly unreadable: readonly RelativePath[];
  readonly mounts: readonly MountTrouble[];
}

function sourceStatus(
  { sources }: OperatorLedger,
  row: SourceRow,
  paused: boolean,
  { unreadable, mounts }: Looked = { unreadable: [], mounts: [] },
): SourceStatus {
  const [standstill] = standstillsOf(row);
  const inAgreement = Math.max(0, row.agreed - row.backlogAgreed);
  // Of the files that were found, what has no row in the ledger yet; rows that are parked or unsure are waiting too.
  const waiting = Math.max(row.found - inAgreement - row.failed, row.parked + row.unsure);
  return {
    path: row.path,
    ownerId: row.ownerId,
    collectionId: sources.collectionId(row.tier) ?? null,
    files: inAgreement + waiting + row.failed,
    compared: row.compared,
    inAgreement,
    waiting,
    failed: row.failed + row.deletesRefused,
    skipped: row.skipped,
    readInPart: row.readInPart,
    // Before another folder as many as a person would agree to; before a missing one nothing is known to be gone.
    held: row.haltRoot === undefined ? row.held : Math.max(row.held, row.haltFiles),
    holdReason: row.lost ?? row.halted ?? row.holdReason,
    halted: row.lost !== null || row.halted !== null,
    remedy: standstill?.remedy ?? null,
    approvalToken: tokenIn(sources, row),
    unreadable: row.unreadable,
    unreadablePaths: unreadable.slice(0, UNREADABLE_NAMED),
    mounts,
    degraded: row.degraded,
    paused,
  };
}
