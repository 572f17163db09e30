import { parkMs } from "../plan/retry.ts";
import type { Later } from "../remote/answer.ts";
import type { ActionContext, ActionSource } from "./context.ts";
import { reportAction, type Outgoing } from "./prepare.ts";

/** Records a file that the service refuses, in its words, until file or rules change. */
export function refuse(
  context: ActionContext,
  source: ActionSource,
  outgoing: Outgoing,
  { code, message }: { readonly code: string; readonly message: string },
  sure: boolean,
  alsoWrite?: () => void,
): void {
  context.ledger.note(() => {
    alsoWrite?.();
    noteTrouble(context, source, outgoing, { state: "failed", sure, code, message });
  });
  const { candidate, action, startedMs, row } = outgoing;
  reportAction(context, source, candidate, action, startedMs, row?.docId ?? undefined, "refused", message);
}

/** Parks a file: for `restMs`, by default longer with each failure. */
export function park(
  context: ActionContext,
  source: ActionSource,
  outgoing: Outgoing,
  { reason, code = "no_answer" }: Pick<Later, "reason"> & { readonly code?: string },
  sure: boolean,
  alsoWrite?: () => void,
  restMs?: number,
): void {
  const { candidate, action, startedMs, row } = outgoing;
  const id = candidate.known?.id;
  const tries = id === undefined ? 0 : context.ledger.files.tries(id);
  const retryAtMs = context.now() + (restMs ?? parkMs(1 + tries));
  context.ledger.note(() => {
    alsoWrite?.();
    noteTrouble(context, source, outgoing, {
      state: "parked",
      sure,
      retryAtMs,
      code,
      message: reason,
    });
  });
  source.checkAgain(candidate.entry.path, retryAtMs);
  reportAction(context, source, candidate, action, startedMs, row?.docId ?? undefined, "parked", reason);
}

/** Records why a file is not in agreement. Runs inside a group commit. */
export function noteTrouble(
  context: ActionContext,
  source: ActionSource,
  { candidate, observed }: Outgoing,
  what: { state: "failed" | "parked"; sure: boolean; retryAtMs?: number; code: string; message: string },
): void {
  const { entry, rulesKey } = observed;
  context.ledger.files.trouble(source.id, candidate.known?.id, { entry, rulesKey, ...what });
}
