import { earliest } from "../../../lib/earliest.ts";
import type { RelativePath } from "../../plan/model.ts";
import { type Counted, countedAs, type SourceWork } from "../../plan/version.ts";
import type { SourceParts } from "./parts.ts";

/** Returns what a source is doing. */
export function activityOf({ id, context, agenda, contact, state }: SourceParts): SourceWork {
  const countedNow = (path: RelativePath): Counted => countedAs(context.ledger.files.living(id, path)?.state);
  const { agreed, failed, nothing } = agenda.counts(countedNow);
  // While it is paused, what waits for the service to be probed is among what was counted.
  return {
    backlog: agreed + nothing + (state.isPaused ? 0 : contact.waiting().size),
    backlogAgreed: agreed,
    backlogFailed: failed,
    reading: agenda.readingCount(),
  };
}

/** Records what a source is doing, for other processes to read. Runs last in a group commit, so that it matches the rows. */
export function noteBacklog(source: SourceParts): void {
  const { sources } = source.context.ledger;
  const { backlog, backlogAgreed } = activityOf(source);
  sources.setBacklog(source.id, backlog, backlogAgreed);
  sources.setCompared(source.id, source.state.isPlanned);
}

/** Since when the oldest change waits; undefined: none does, or only a person can decide about them. */
export function oldestWaitingMs({
  id,
  context,
  agenda,
  contact,
  deletes,
  state,
}: SourceParts): number | undefined {
  const { ledger } = context;
  if (state.isPaused || ledger.contacts.loss(id) !== undefined) return undefined;
  return earliest(
    state.isPlanned && contact.waiting().size === 0 ? undefined : state.openedMs,
    agenda.oldestMs((path) => ledger.files.living(id, path)?.state === "parked"),
    deletes.oldestMs(),
  );
}

/** Reports whether files or deletes are planned and not done; while the source is paused, whether any are in flight. */
export function isSending({ agenda, deletes, state }: SourceParts): boolean {
  return (state.isPaused ? agenda.isAnySending() : agenda.hasJobs()) || deletes.hasJobs();
}

/** Reports whether everything that was marked is done; while the source is paused, whether it was checked. */
export function isIdle(source: SourceParts): boolean {
  const { state, agenda } = source;
  return state.isPlanned && !state.isPassing && agenda.isQuiet() && !isSending(source);
}
