import { earliest } from "../../../lib/earliest.ts";
import type { RelativePath } from "../../plan/model.ts";
import { type Counted, countedAs } from "../../plan/version.ts";
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

/** Returns what a source is doing. */
export function activityOf({ options, context, agenda, contact, state }: SourceParts): SourceActivity {
  const { states } = agenda;
  const countedNow = (path: RelativePath): Counted =>
    countedAs(context.ledger.files.living(options.row.id, path)?.state);
  const { agreed, failed, nothing } = states.counts(countedNow);
  // While it is paused, what waits for the service to be probed is among what was counted.
  return {
    backlog: agreed + nothing + (state.isPaused ? 0 : contact.waiting().size),
    backlogAgreed: agreed,
    backlogFailed: failed,
    reading: states.readingCount(),
  };
}

/** Records what a source is doing, for other processes to read. Runs last in a group commit, so that it matches the rows. */
export function noteBacklog(parts: SourceParts): void {
  const { id } = parts.options.row;
  const { sources } = parts.context.ledger;
  const { backlog, backlogAgreed } = activityOf(parts);
  sources.setBacklog(id, backlog, backlogAgreed);
  sources.setCompared(id, parts.state.isPlanned);
}

/** Returns reports of a source's work. */
export function progressOf(parts: SourceParts) {
  const { agenda, contact, deletes, state } = parts;
  const { ledger, now } = parts.context;
  const { id } = parts.options.row;
  const { states } = agenda;
  const openedMs = now();
  const isSending = (): boolean =>
    (state.isPaused ? states.isAnySending() : states.hasJobs()) || deletes.hasJobs();
  return {
    activity: (): SourceActivity => activityOf(parts),
    noteBacklog: (): void => noteBacklog(parts),
    /** Reports whether the whole source was checked in this run, so that all work is known. */
    isPlanned: (): boolean => state.isPlanned,
    /** Since when the oldest change waits; undefined: none does, or only a person can decide about them. */
    oldestWaitingMs: (): number | undefined => {
      if (state.isPaused || ledger.contacts.loss(id) !== undefined) return undefined;
      return earliest(
        state.isPlanned ? undefined : openedMs,
        states.oldestMs((path) => ledger.files.living(id, path)?.state === "parked"),
        deletes.oldestMs(),
        contact.waiting().size > 0 ? state.probingSinceMs : undefined,
      );
    },
    /** Reports whether files or deletes are planned and not done; while the source is paused, whether any are in flight. */
    isSending,
    /** Reports whether the folder is being checked, or is due now; also while a former process's end is settled. */
    isScanning: (): boolean => {
      const nextMs = states.nextDueMs();
      return state.isPassing || (nextMs !== undefined && nextMs <= now());
    },
    /** Reports whether the last check compared nothing because the source is halted. Until the next one, work may be unknown. */
    isHalted: (): boolean => state.isHalted,
    /** Reports whether everything that was marked is done; while the source is paused, whether it was checked. */
    isIdle: (): boolean => state.isPlanned && !state.isPassing && states.isQuiet() && !isSending(),
  };
}
