import { expect, it } from "vitest";
import { EndpointUnreachable } from "../../../src/kb/models/endpoint.ts";
import { modelFailure, ModelFailure } from "../../../src/kb/models/model-failure.ts";

const ASKED = { model: "seeing", apiKey: "sk-secret", timeoutMs: 1000 };

/** An error as the client throws it: the system's error is two causes deep. */
function connectionError(code: string): Error {
  const system = Object.assign(new Error("a system error"), { code });
  return new EndpointUnreachable("no answer", { cause: new TypeError("failed", { cause: system }) });
}

it.each([
  ["ECONNREFUSED", "its endpoint refuses the connection"],
  ["ENOTFOUND", "the host name of its endpoint does not resolve"],
  ["ECONNRESET", "its endpoint closed the connection (ECONNRESET)"],
  ["UND_ERR_SOCKET", "its endpoint closed the connection (UND_ERR_SOCKET)"],
  ["DEPTH_ZERO_SELF_SIGNED_CERT", "the TLS connection to its endpoint failed (DEPTH_ZERO_SELF_SIGNED_CERT)"],
  [
    "ERR_TLS_CERT_ALTNAME_INVALID",
    "the TLS connection to its endpoint failed (ERR_TLS_CERT_ALTNAME_INVALID)",
  ],
  [
    "ERR_SSL_PACKET_LENGTH_TOO_LONG",
    "the TLS connection to its endpoint failed (ERR_SSL_PACKET_LENGTH_TOO_LONG)",
  ],
  ["CERT_HAS_EXPIRED", "the TLS connection to its endpoint failed (CERT_HAS_EXPIRED)"],
  ["EPROTO", "the TLS connection to its endpoint failed (EPROTO)"],
  [
    "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
    "the TLS connection to its endpoint failed (UNABLE_TO_VERIFY_LEAF_SIGNATURE)",
  ],
  ["HPE_INVALID_CONSTANT", "the connection to its endpoint failed (HPE_INVALID_CONSTANT)"],
])("a connection error with the code %s reads: %s", (code, problem) => {
  const { message, kind } = modelFailure(connectionError(code), ASKED);
  expect([message, kind]).toEqual([`the model seeing failed: ${problem}`, "unreachable"]);
});

it.each([
  [400, true],
  [422, true],
  [404, false],
  [500, false],
  [undefined, false],
])("an endpoint that answers %s and names a field refuses the field: %s", (status, refuses) => {
  const facts = { code: "model_failed", subject: "m", kind: "refused" as const, status };
  expect(new ModelFailure("the model m failed: seed is unknown", facts).refuses("seed")).toBe(refuses);
});
