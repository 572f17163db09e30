import { createServer } from "node:net";
import { expect, it } from "vitest";
import { exitCodeOf } from "../../src/cli/output/exit-code.ts";
import { listenFailure } from "../../src/lib/listen-failure.ts";

/** The error of listening on a host. */
const failureAt = async (host: string): Promise<Error> =>
  new Promise((resolve) => {
    const server = createServer();
    server.once("error", resolve);
    server.listen({ host, port: 0 });
  });
const failure = (code: string): Error => Object.assign(new Error(`listen ${code}`), { code });
const fact = { subject: "192.0.2.7:80", hint: "Set service.port." };

it("a missing address is retryable, because a network may come up later", async () => {
  const missing = listenFailure(await failureAt("192.0.2.7"), fact);
  expect(missing).toMatchObject({
    code: "address_missing",
    retryable: true,
    message: "cannot listen on 192.0.2.7:80: this machine does not have that address (yet)",
    hint: expect.stringContaining("Set service.port."),
  });
  expect(exitCodeOf(missing)).toBe(75);
});

it.each([
  ["EADDRINUSE", "address_in_use", 75, "cannot listen on 192.0.2.7:80: another program does"],
  ["EAI_AGAIN", "address_missing", 75, "this machine cannot resolve that name (yet)"],
  ["EACCES", "address_refused", 2, "permission denied: a port below 1024 needs CAP_NET_BIND_SERVICE"],
  ["ENOTFOUND", "address_refused", 2, "cannot listen on 192.0.2.7:80: listen ENOTFOUND"],
])("%s is reported as %s with its cause", (code, expected, exit, message) => {
  const cause = failure(code);
  const reported = listenFailure(cause, fact);
  expect(reported).toMatchObject({ code: expected, subject: fact.subject, cause });
  expect(reported.message).toContain(message);
  expect(reported.hint).toContain("Set service.port.");
  expect(exitCodeOf(reported)).toBe(exit);
});
