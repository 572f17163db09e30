import { STATUS_CODES } from "node:http";
import type { Socket } from "node:net";
import { codeOf } from "../../lib/failure.ts";
import { REQUEST_ID_HEADER } from "../../wire/routes.ts";
import { Refusal } from "../resources/refusal.ts";
import type { RefusalCode } from "../resources/refusal.ts";
import { refusalAnswer } from "./operation/status.ts";

/**
 * Answers input that is not a valid HTTP request in the format of all refusals, and closes the connection. `isAnswering`:
 * another answer is in progress, so nothing is sent. Returns the code sent; undefined: nothing.
 */
export function answerClientError(
  error: Error,
  socket: Socket,
  isAnswering: boolean,
  requestId: string,
): RefusalCode | undefined {
  if (codeOf(error) === "ECONNRESET" || !socket.writable || isAnswering) {
    socket.destroy();
    return undefined;
  }
  const refusal = refusalOf(codeOf(error));
  const { status, body } = refusalAnswer(refusal);
  const text = JSON.stringify(body);
  socket.end(
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ""}\r\nconnection: close\r\ncontent-type: application/json; charset=utf-8\r\n` +
      `${REQUEST_ID_HEADER}: ${requestId}\r\ncontent-length: ${Buffer.byteLength(text)}\r\n\r\n${text}`,
  );
  return refusal.refusal;
}

function refusalOf(code: string | undefined): Refusal {
  switch (code ?? "") {
    case "HPE_HEADER_OVERFLOW":
      return new Refusal("headers_too_large", "The headers of the request are too large.");
    case "ERR_HTTP_REQUEST_TIMEOUT":
      return new Refusal("request_timeout", "The request did not arrive in time.");
    default:
      return new Refusal("invalid_request", "This is not a valid HTTP request.");
  }
}
