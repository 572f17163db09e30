import type { Later, Reply } from "./answer.ts";

/**
 * Outcome of a request. `done`, `refused` and `gone` are the service's decision about one document. The others are not
 * usable, and the request is repeated: `key_refused`, `unreached` (no server at the address), `unanswered` (any other
 * failure).
 */
export type RequestOutcome = "done" | "refused" | "gone" | "key_refused" | "unreached" | "unanswered";

/** Notified of what the daemon does, for metrics. No argument names a file. */
export interface DaemonObserver {
  /** Called at the end of a request. `request` is the name of the operation, from a fixed list. */
  readonly request: (request: string, outcome: RequestOutcome, seconds: number) => void;
  /** Called when a whole source has been compared with the ledger. `source` is its number in the ledger. */
  rescanned(source: number, seconds: number): void;
}

/** Classifies a reply for metrics. */
export function outcomeOf(reply: Pick<Reply<unknown>, "kind"> | Later): RequestOutcome {
  if (reply.kind !== "later") return reply.kind;
  // A reply of that kind is a Later: the parameter's type only omits the value.
  const { blame, unreached } = reply as Later;
  if (blame === "key") return "key_refused";
  return unreached === true ? "unreached" : "unanswered";
}
