import type { Later, Reply } from "./answer.ts";

/**
 * What came of a request: `done`; `refused` and `gone` are the service's word on one document; the others are no usable
 * answer, and the request is made again: `key_refused`, `unreached` (nobody was there), `unanswered` (whatever else).
 */
export type RequestOutcome = "done" | "refused" | "gone" | "key_refused" | "unreached" | "unanswered";

/** Notified of what the daemon does, beside its activities, for whoever measures it. Nothing here names a file. */
export interface DaemonObserver {
  /** A request to the service is over. `request` is the name of the operation, of a fixed list. */
  readonly request: (request: string, outcome: RequestOutcome, seconds: number) => void;
  /** A source, by its number in the ledger, was compared with the ledger as a whole. */
  rescanned(source: number, seconds: number): void;
}

/** What came of a request, as it is counted. */
export function outcomeOf(reply: Pick<Reply<unknown>, "kind"> | Later): RequestOutcome {
  if (reply.kind !== "later") return reply.kind;
  // A reply of that kind is a Later: the first type only keeps the value out.
  const { blame, unreached } = reply as Later;
  if (blame === "key") return "key_refused";
  return unreached === true ? "unreached" : "unanswered";
}
