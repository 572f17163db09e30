import { codeOf, KbsyncError, messageOf } from "../../lib/failure.ts";

/** A fetch that failed: `why` goes on from the address, as in "https://x: the server answered 404". */
export function linkFailure(why: string, subject: string, cause?: unknown): KbsyncError {
  return new KbsyncError(why, { code: "link_failed", subject, ...(cause === undefined ? {} : { cause }) });
}

/** Whatever a fetch threw, as a failure with the cause in words a person can act on. */
export function inWords(error: unknown, url: URL, timeoutMs: number): KbsyncError {
  if (error instanceof KbsyncError) return error;
  if (error instanceof DOMException && error.name === "TimeoutError") {
    return linkFailure(`it took longer than ${timeoutMs / 1000} s`, url.host, error);
  }
  return linkFailure(wordsOf(codeOf(error) ?? "", messageOf(error), url.hostname), url.host, error);
}

function wordsOf(code: string, message: string, host: string): string {
  if (
    /^(?:CERT_|DEPTH_ZERO_|UNABLE_TO_|SELF_SIGNED_|ERR_TLS_|ERR_SSL_|HOSTNAME_MISMATCH|INVALID_)/.test(code)
  ) {
    return `no safe connection to ${host}: its certificate or protocol is not accepted (${code})`;
  }
  switch (code) {
    case "ENOTFOUND":
    case "ENODATA":
      return `there is no host ${host}`;
    case "EAI_AGAIN":
      return `the name ${host} could not be resolved at present`;
    case "ECONNREFUSED":
      return `${host} refuses the connection`;
    case "EHOSTUNREACH":
    case "ENETUNREACH":
    case "ENETDOWN":
    case "EADDRNOTAVAIL":
      return `${host} cannot be reached from here`;
    case "ETIMEDOUT":
    case "UND_ERR_CONNECT_TIMEOUT":
      return `${host} does not take the connection in time`;
    case "UND_ERR_HEADERS_TIMEOUT":
    case "UND_ERR_BODY_TIMEOUT":
      return `${host} stopped answering`;
    case "ECONNRESET":
    case "EPIPE":
    case "UND_ERR_SOCKET":
    case "UND_ERR_RES_CONTENT_LENGTH_MISMATCH":
      return `${host} broke off its answer`;
    case "UND_ERR_HEADERS_OVERFLOW":
    case "HPE_HEADER_OVERFLOW":
      return `the headers of ${host} are too large`;
    default:
      return code.startsWith("HPE_") ? `${host} does not answer in HTTP` : `the fetch failed: ${message}`;
  }
}
