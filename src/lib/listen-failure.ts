import { codeOf, KbsyncError, messageOf } from "./failure.ts";

/** What was to be listened on, and for what. */
export interface ListenFacts {
  /** Host and port. */
  readonly subject: string;
  /** What listens, after `cannot listen`: ` for metrics`. Default: nothing is said. */
  readonly what?: string;
  /** How a person says another address. */
  readonly hint: string;
}

/**
 * Why nothing can listen there: `address_in_use`, and `address_missing` where this machine does not have the address or
 * cannot look it up, which both pass (a network or a tunnel may come later than the program); else `address_refused`. Pure.
 */
export function listenFailure(error: unknown, { subject, what = "", hint }: ListenFacts): KbsyncError {
  const { code, words, more, retryable } = reasonOf(error);
  return new KbsyncError(`cannot listen${what} on ${subject}: ${words}`, {
    code,
    subject,
    retryable,
    hint: more === undefined ? hint : `${more} ${hint}`,
    cause: error,
  });
}

function reasonOf(error: unknown): {
  readonly code: string;
  readonly words: string;
  readonly more?: string;
  readonly retryable: boolean;
} {
  switch (codeOf(error)) {
    case "EADDRINUSE":
      return { code: "address_in_use", words: "another program does", retryable: true };
    case "EADDRNOTAVAIL":
      return {
        code: "address_missing",
        words: "this machine does not have that address (yet)",
        more: "`ip address` lists those that it has; one that a network or a tunnel brings comes with it.",
        retryable: true,
      };
    case "EAI_AGAIN":
      return {
        code: "address_missing",
        words: "this machine cannot tell the address of that name (yet)",
        retryable: true,
      };
    case "EACCES":
      return {
        code: "address_refused",
        words: "this program may not: a port below 1024 needs a right (CAP_NET_BIND_SERVICE)",
        retryable: false,
      };
    case undefined:
    default:
      return { code: "address_refused", words: messageOf(error), retryable: false };
  }
}
