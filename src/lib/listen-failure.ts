import { codeOf, KbsyncError, messageOf } from "./failure.ts";

/** Where and for what a server failed to listen. */
export interface ListenFacts {
  /** Host and port. */
  readonly subject: string;
  /** Purpose, appended to `cannot listen`: ` for metrics`. Default: none. */
  readonly what?: string;
  /** How to configure another address. */
  readonly hint: string;
}

/**
 * Explains why a server cannot listen: `address_in_use`; `address_missing` if this machine lacks the address or cannot
 * resolve the name; else `address_refused`. The first two are retryable: a network or a tunnel may come up later. Pure.
 */
export function listenFailure(error: unknown, { subject, what = "", hint }: ListenFacts): KbsyncError {
  const { code, reason, more, retryable } = reasonOf(error);
  return new KbsyncError(`cannot listen${what} on ${subject}: ${reason}`, {
    code,
    subject,
    retryable,
    hint: more === undefined ? hint : `${more} ${hint}`,
    cause: error,
  });
}

function reasonOf(error: unknown): {
  readonly code: string;
  readonly reason: string;
  readonly more?: string;
  readonly retryable: boolean;
} {
  switch (codeOf(error)) {
    case "EADDRINUSE":
      return { code: "address_in_use", reason: "another program does", retryable: true };
    case "EADDRNOTAVAIL":
      return {
        code: "address_missing",
        reason: "this machine does not have that address (yet)",
        more: "`ip address` lists the addresses of this machine; a network or a tunnel may add its own later.",
        retryable: true,
      };
    case "EAI_AGAIN":
      return {
        code: "address_missing",
        reason: "this machine cannot resolve that name (yet)",
        retryable: true,
      };
    case "EACCES":
      return {
        code: "address_refused",
        reason: "permission denied: a port below 1024 needs CAP_NET_BIND_SERVICE",
        retryable: false,
      };
    case undefined:
    default:
      return { code: "address_refused", reason: messageOf(error), retryable: false };
  }
}
