import type { Activity, Outcome } from "../ledger/activity.ts";
import type { Trouble } from "../ledger/files/troubles.ts";
import type { Candidate, ScanEntry } from "../plan/model.ts";
import { parkMs } from "../plan/retry.ts";
import type { ActionContext, ActionSource } from "./context.ts";

/** Dependencies of recording a file's state. */
export type Reporting = Pick<ActionContext, "ledger" | "now" | "report">;

/** A file that is not sent, for good or for now. */
interface Unsent {
  readonly candidate: Candidate;
  readonly entry: ScanEntry;
  readonly rulesKey: number;
  /** The service certainly still has what the file's row says. */
  readonly isSure: boolean;
  readonly action: Exclude<Activity["action"], "audit">;
  readonly startedMs: number;
}

/**
 * Records why a file is not sent: `failed` or `skipped` until file or rules change, `parked` until a time. `alsoWrite` runs in the same
 * transaction.
 */
export function giveUp(
  context: Reporting,
  source: Pick<ActionSource, "id">,
  { candidate, entry, rulesKey, isSure, action, startedMs }: Unsent,
  what: Trouble & { readonly state: "failed" | "skipped" | "parked"; readonly retryAtMs?: number },
  alsoWrite?: () => void,
): void {
  const { known } = candidate;
  context.ledger.note(() => {
    alsoWrite?.();
    context.ledger.files.trouble(source.id, known?.id, { entry, rulesKey, sure: isSure, ...what });
  });
  const outcome = what.state === "failed" ? "refused" : what.state;
  const docId = known?.docId ?? undefined;
  reportAction(context, source, candidate, action, startedMs, docId, outcome, what.message);
}

/** Parks a file: for `restMs`, by default longer with each failure. Then it is checked again. */
export function park(
  context: Reporting,
  source: Pick<ActionSource, "id" | "agenda">,
  unsent: Unsent,
  { code, message, restMs }: Trouble & { readonly restMs?: number | undefined },
  alsoWrite?: () => void,
): void {
  const { known, entry } = unsent.candidate;
  const tries = known === undefined ? 0 : context.ledger.files.tries(known.id);
  const retryAtMs = context.now() + (restMs ?? parkMs(1 + tries));
  giveUp(context, source, unsent, { state: "parked", code, message, retryAtMs }, alsoWrite);
  source.agenda.checkAgain(entry.path, retryAtMs);
}

/** Records the result of a file's action. */
export function reportAction(
  context: Pick<ActionContext, "now" | "report">,
  source: Pick<ActionSource, "id">,
  candidate: Candidate,
  action: Exclude<Activity["action"], "audit">,
  startedMs: number,
  docId: string | undefined,
  outcome: Outcome = "done",
  message?: string,
): void {
  const atMs = context.now();
  context.report({
    atMs,
    source: source.id,
    path: candidate.entry.path,
    from: candidate.from,
    docId,
    action,
    outcome,
    durationMs: atMs - startedMs,
    message,
  });
}
