import { expect, it } from "vitest";
import { fetchFailure, linkFailure } from "../../../src/kb/fetch/link-failure.ts";

const URL_OF_A_LINK = new URL("https://docs.example.org:8443/page");
const failed = (code: string): Error => Object.assign(new Error("words of a library"), { code });

it.each([
  ["CERT_HAS_EXPIRED", /^the TLS connection to docs\.example\.org failed: .*\(CERT_HAS_EXPIRED\)$/],
  ["UNABLE_TO_VERIFY_LEAF_SIGNATURE", /^the TLS connection to docs\.example\.org failed/],
  ["ERR_TLS_CERT_ALTNAME_INVALID", /^the TLS connection to docs\.example\.org failed/],
  ["ENOTFOUND", /^there is no host docs\.example\.org$/],
  ["ENODATA", /^there is no host docs\.example\.org$/],
  ["EAI_AGAIN", /^the name docs\.example\.org cannot be resolved at present$/],
  ["ECONNREFUSED", /^docs\.example\.org refuses the connection$/],
  ["EHOSTUNREACH", /^docs\.example\.org cannot be reached from here$/],
  ["ENETUNREACH", /^docs\.example\.org cannot be reached from here$/],
  ["ETIMEDOUT", /^docs\.example\.org does not accept the connection in time$/],
  ["UND_ERR_CONNECT_TIMEOUT", /^docs\.example\.org does not accept the connection in time$/],
  ["UND_ERR_HEADERS_TIMEOUT", /^docs\.example\.org stopped answering$/],
  ["UND_ERR_BODY_TIMEOUT", /^docs\.example\.org stopped answering$/],
  ["ECONNRESET", /^docs\.example\.org closed the connection before the end of its answer$/],
  ["EPIPE", /^docs\.example\.org closed the connection before the end of its answer$/],
  ["UND_ERR_SOCKET", /^docs\.example\.org closed the connection before the end of its answer$/],
  ["UND_ERR_HEADERS_OVERFLOW", /^the headers of docs\.example\.org are too large$/],
  ["HPE_HEADER_OVERFLOW", /^the headers of docs\.example\.org are too large$/],
  ["HPE_INVALID_CONSTANT", /^docs\.example\.org does not answer in HTTP$/],
  ["EOTHER", /^the connection to docs\.example\.org failed \(EOTHER\)$/],
  ["", /^the connection to docs\.example\.org failed$/],
])("describes a fetch that failed with the code %j in words of its own", (code, words) => {
  const error = failed(code);
  const failure = fetchFailure(error, URL_OF_A_LINK, 30_000);
  expect(failure.message).toMatch(words);
  expect(failure).toMatchObject({ code: "link_failed", subject: "docs.example.org:8443", cause: error });
});

it("states the time limit of a fetch that took too long", () => {
  const timeout = new DOMException("the time is over", "TimeoutError");
  expect(fetchFailure(timeout, URL_OF_A_LINK, 30_000).message).toBe("it took longer than 30 s");
});

it("passes a failure on that has words already", () => {
  const failure = linkFailure("the server answered 404", "docs.example.org");
  expect(fetchFailure(failure, URL_OF_A_LINK, 30_000)).toBe(failure);
});
