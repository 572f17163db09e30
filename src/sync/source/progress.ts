import { earliest } from "../../lib/earliest.ts";
import { countedAs } from "../plan/version.ts";
import type { FileState, RelativePath } from "../plan/model.ts";
import type { SourceParts } from "./parts.ts";

/** The work of a source, beyond the ledger's records. */
export interface SourceActivity {
  /** Number of files planned and not done whose row counts as nothing, or as one in agreement. */
  readonly backlog: number;
  /** Number of them that have a row in agreement: an older version of theirs. */
  readonly backlogAgreed: number;
  /** Number of files planned and not done whose row is failed: they wait for another try. */
  readonly backlogFailed: number;
  /** Number of planned files that the service has and reads. */
  readonly reading: number;
}

/** Reports of a source's work. */
export interface SourceProgress {
  activity(): SourceActivity;
  /**
   * Records what it is doing, for other processes to read. Runs last in a group commit, so that it matches the rows.
   */
  readonly noteBacklog: () => void;
  /** Reports whether the whole source was checked in this run, so that all work is known. */
  isPlanned(): boolean;
  /** Since when the oldest change waits; undefined: none does, or only a person can decide about them. */
  oldestWaitingMs(): number | undefined;
  /** Reports whether files or deletes are planned and not done. */
  isSending(): boolean;
  /** Reports whether the folder is being checked, or is due now; also while a former process's end is settled. */
  isScanning(): boolean;
  /** Reports whether everything that was marked is done; while the source is paused, whether it was checked. */
  isIdle(): boolean;
  /** See `Checking`. */
  isHalted(): boolean;
}

/** The current work of the source. */
export function progressOf({
  options: { row },
  context: { ledger, now },
  agenda: { states },
  contact,
  deletes,
  checking,
  state,
}: SourceParts): SourceProgress {
  const openedMs = now();
  const stateOf = (path: RelativePath): FileState | undefined => ledger.files.living(row.id, path)?.state;
  const isSending = (): boolean => states.hasJobs() || deletes.hasJobs();
  const activity = (): SourceActivity => {
    const { agreed, failed, nothing } = states.counts((path) => countedAs(stateOf(path)), state.paused);
    // While it is paused, what waits for the adoption is among what was counted.
    return {
      backlog: agreed + nothing + (state.paused ? 0 : contact.waiting().size),
      backlogAgreed: agreed,
      backlogFailed: failed,
      reading: states.readingCount(),
    };
  };
  const isIdle = (): boolean =>
    checking.isPlanned() && !checking.isPassing() && states.isQuiet() && !isSending();
  return {
    noteBacklog: () => {
      const { backlog, backlogAgreed } = activity();
      ledger.sources.setBacklog(row.id, backlog, backlogAgreed);
      ledger.sources.setCompared(row.id, checking.isPlanned());
    },
    activity,
    isPlanned: () => checking.isPlanned(),
    oldestWaitingMs: () => {
      if (state.paused || ledger.contacts.loss(row.id) !== undefined) return undefined;
      return earliest(
        checking.isPlanned() ? undefined : openedMs,
        states.oldestMs((path) => stateOf(path) === "parked"),
        deletes.oldestMs(),
        contact.waiting().size > 0 ? checking.adoptingSinceMs() : undefined,
      );
    },
    isSending,
    isScanning: () => {
      const nextMs = states.nextDueMs();
      return checking.isPassing() || (nextMs !== undefined && nextMs <= now());
    },
    isHalted: () => checking.isHalted(),
    isIdle,
  };
}
