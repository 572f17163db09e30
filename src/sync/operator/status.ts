import { approvalsOf } from "./approve.ts";
import { type OperatorLedger, readLedger } from "./offline.ts";
import type { SkippedFile, TroubledFile } from "../ledger/files.ts";
import type { RemovedSource, SourceRow, Sources } from "../ledger/sources.ts";
import type { MountTrouble } from "../source/mount-warnings.ts";
import type { RelativePath } from "../plan/model.ts";
import type { SourceActivity } from "../source/source.ts";
import { standstillsOf } from "../ledger/standstill.ts";

export type { SkippedFile, TroubledFile } from "../ledger/files.ts";

/** How far one source is in agreement. Counts are of files. */
export interface SourceStatus {
  readonly path: string;
  readonly ownerId: string;
  /** Null until the service told it. */
  readonly collectionId: string | null;
  /** Files that are wanted and there: in agreement, waiting or failed. */
  readonly files: number;
  /**
   * Whether the whole folder was compared with what is known of it since the daemon started, or before it ended. False:
   * more may wait than these counts say.
   */
  readonly compared: boolean;
  readonly inAgreement: number;
  readonly waiting: number;
  /** Files that the service will not take, and deletes that it will not do; these are not among `files`. */
  readonly failed: number;
  /** Files that are left out, empty or of no kind that is taken; not among `files`. */
  readonly skipped: number;
  /** Files in agreement of which the service read a part alone; `kbsync why FILE` tells which. */
  readonly readInPart: number;
  /** Deletes that wait for a person. */
  readonly held: number;
  /** Why deletes are held, or why the whole source stands still; null when neither. */
  readonly holdReason: string | null;
  /** The folder is missing or another one: nothing is sent for it. */
  readonly halted: boolean;
  /** What a person can do about the hold reason, in a sentence; null where there is none. */
  readonly remedy: string | null;
  /** Names exactly what an approval would cover now; null where there is nothing to agree to. */
  readonly approvalToken: string | null;
  /** Folders and files that could not be looked at. */
  readonly unreadable: number;
  /** The first of them, "" for the source's own folder; empty where only their number is known, from the ledger alone. */
  readonly unreadablePaths: readonly RelativePath[];
  /** Mounts below the folder that are not as they were; empty where no daemon runs. They are among what is unreadable. */
  readonly mounts: readonly MountTrouble[];
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
  /** Names exactly what an approval of their end would cover now. */
  readonly approvalToken: string;
}

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
