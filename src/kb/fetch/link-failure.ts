import { codeOf, KbsyncError, messageOf } from "../../lib/failure.ts";

/** Failure of a fetch. `why` continues the address, as in "https://x: the server answered 404". */
export function linkFailure(why: string, subject: string, cause?: unknown): KbsyncError {
  return new KbsyncError(why, { code: "link_failed", subject, ...(cause === undefined ? {} : { cause }) });
}

/** Converts an error of a fetch into a failure whose message a person can act on. */
export function fetchFailure(error: unknown, url: URL, timeoutMs: number): KbsyncError {
  if (error instanceof KbsyncError) return error;
  if (error instanceof DOMException && error.name === "TimeoutError") {
    return linkFailure(`it took longer than ${timeoutMs / 1000} s`, url.host, error);
  }
  return linkFailure(describe(codeOf(error) ?? "", messageOf(error), url.hostname), url.host, error);
}

function describe(code: string, message: string, host: string): string {
  if (
    /^(?:CERT_|DEPTH_ZERO_|UNABLE_TO_|SELF_SIGNED_|ERR_TLS_|ERR_SSL_|HOSTNAME_MISMATCH|INVALID_)/.test(code)
  ) {
    return `the TLS connection to ${host} failed: its certificate or protocol is not accepted (${code})`;
  }
  switch (code) {
    case "ENOTFOUND":
    case "ENODATA":
      return `there is no host ${host}`;
    case "EAI_AGAIN":
      return `the name ${host} cannot be resolved at present`;
    case "ECONNREFUSED":
      return `${host} refuses the connection`;
    case "EHOSTUNREACH":
    case "ENETUNREACH":
    case "ENETDOWN":
    case "EADDRNOTAVAIL":
      return `${host} cannot be reached from here`;
    case "ETIMEDOUT":
    case "UND_ERR_CONNECT_TIMEOUT":
      return `${host} does not accept the connection in time`;
    case "UND_ERR_HEADERS_TIMEOUT":
    case "UND_ERR_BODY_TIMEOUT":
      return `${host} stopped answering`;
    case "ECONNRESET":
    case "EPIPE":
    case "UND_ERR_SOCKET":
    case "UND_ERR_RES_CONTENT_LENGTH_MISMATCH":
      return `${host} closed the connection before the end of its answer`;
    case "UND_ERR_HEADERS_OVERFLOW":
    case "HPE_HEADER_OVERFLOW":
      return `the headers of ${host} are too large`;
    default:
      return code.startsWith("HPE_") ? `${host} does not answer in HTTP` : `the fetch failed: ${message}`;
  }
}
