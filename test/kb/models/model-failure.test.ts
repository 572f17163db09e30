import { APIConnectionError } from "openai";
import { expect, it } from "vitest";
import { modelFailure } from "../../../src/kb/models/model-failure.ts";

const ASKED = { model: "seeing", apiKey: "sk-secret", timeoutMs: 1000 };

/** As the client throws it: what the system said lies two causes deep. */
function connectionError(code: string): Error {
  const said = Object.assign(new Error("what the system says"), { code });
  return new APIConnectionError({
    message: "Connection error.",
    cause: new TypeError("failed", { cause: said }),
  });
}

it.each([
  ["ECONNREFUSED", "its endpoint refuses the connection"],
  ["ENOTFOUND", "there is no host of its endpoint's name"],
  ["ECONNRESET", "its endpoint broke off the connection (ECONNRESET)"],
  ["UND_ERR_SOCKET", "its endpoint broke off the connection (UND_ERR_SOCKET)"],
  [
    "DEPTH_ZERO_SELF_SIGNED_CERT",
    "there is no safe connection to its endpoint (DEPTH_ZERO_SELF_SIGNED_CERT)",
  ],
  [
    "ERR_TLS_CERT_ALTNAME_INVALID",
    "there is no safe connection to its endpoint (ERR_TLS_CERT_ALTNAME_INVALID)",
  ],
  [
    "ERR_SSL_PACKET_LENGTH_TOO_LONG",
    "there is no safe connection to its endpoint (ERR_SSL_PACKET_LENGTH_TOO_LONG)",
  ],
  ["CERT_HAS_EXPIRED", "there is no safe connection to its endpoint (CERT_HAS_EXPIRED)"],
  ["EPROTO", "there is no safe connection to its endpoint (EPROTO)"],
  [
    "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
    "there is no safe connection to its endpoint (UNABLE_TO_VERIFY_LEAF_SIGNATURE)",
  ],
  ["HPE_INVALID_CONSTANT", "the connection to its endpoint failed (HPE_INVALID_CONSTANT)"],
])("%s: %s", (code, words) => {
  const { message, kind } = modelFailure(connectionError(code), ASKED);
  expect([message, kind]).toEqual([`the model seeing failed: ${words}`, "unreachable"]);
});
