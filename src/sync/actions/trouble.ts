import { parkMs } from "../plan/retry.ts";
import type { Later } from "../remote/answer.ts";
import type { ActionContext, ActionSource } from "./context.ts";
import { reportAction, type Departure } from "./prepare.ts";

/** Failures that may be a file's own, before the service is probed. */
const TRIES_MAX = 3;

/** Records a file that the service refuses, in its words, until file or rules change. */
export function refuse(
  context: ActionContext,
  source: ActionSource,
  departure: Departure,
  { code, message }: { readonly code: string; readonly message: string },
  sure: boolean,
  alsoWrite?: () => void,
): void {
  context.ledger.note(() => {
    alsoWrite?.();
    noteTrouble(context, source, departure, { state: "failed", sure, code, message });
  });
  const { candidate, action, startedMs, row } = departure;
  reportAction(context, source, candidate, action, startedMs, row?.docId ?? undefined, "refused", message);
}

/** Parks a file: for `restMs`, by default longer with each failure. */
export function park(
  context: ActionContext,
  source: ActionSource,
  departure: Departure,
  { reason, code = "no_answer" }: Pick<Later, "reason"> & { readonly code?: string },
  sure: boolean,
  alsoWrite?: () => void,
  restMs?: number,
): void {
  const { candidate, action, startedMs, row } = departure;
  const id = candidate.known?.id;
  const tries = id === undefined ? 0 : context.ledger.files.tries(id);
  const retryAtMs = context.now() + (restMs ?? parkMs(1 + tries));
  context.ledger.note(() => {
    alsoWrite?.();
    noteTrouble(context, source, departure, {
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
  { candidate, observed }: Departure,
  what: { state: "failed" | "parked"; sure: boolean; retryAtMs?: number; code: string; message: string },
): void {
  const { entry, rulesKey } = observed;
  context.ledger.files.trouble(source.id, candidate.known?.id, { entry, rulesKey, ...what });
}

/**
 * Counts failures that may be a file's own. After some of them it sends the service a cheap request. If that is
 * answered, the file is to blame and is parked. If not, the service is, and parking one file after another would only
 * delay them when it comes back.
 */
export function countTries({ remote, signal }: ActionContext): { isOver(reply: Later): Promise<boolean> } {
  let count = 0;
  return {
    isOver: async ({ blame, isForbidden }) => {
      if (blame === "request" && isForbidden === true) return true;
      if (blame === "request") count += 1;
      if (count < TRIES_MAX) return false;
      count = 0;
      return (await remote.collections(signal)).kind === "done";
    },
  };
}
