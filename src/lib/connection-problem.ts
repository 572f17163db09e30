import { codeOf } from "./failure.ts";

/** Describes an error of a connection to a host. Contains no text of a library and no address that the name resolved to. */
export function connectionProblem(error: unknown, host: string): string {
  const code = codeOf(error) ?? "";
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
      if (code.startsWith("HPE_")) return `${host} does not answer in HTTP`;
      return `the connection to ${host} failed${code === "" ? "" : ` (${code})`}`;
  }
}
