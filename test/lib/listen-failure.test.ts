import { createServer } from "node:net";
import { expect, it } from "vitest";
import { exitCodeOf } from "../../src/cli/output/exit-code.ts";
import { listenFailure } from "../../src/lib/listen-failure.ts";

/** What listening there comes to. */
const failureAt = async (host: string): Promise<Error> =>
  new Promise((resolve) => {
    const server = createServer();
    server.once("error", resolve);
    server.listen({ host, port: 0 });
  });
const failure = (code: string): Error => Object.assign(new Error(`listen ${code}`), { code });
const fact = { subject: "192.0.2.7:80", hint: "Set service.port." };

it("an address that this machine does not have yet passes: a network that comes later brings it", async () => {
  const told = listenFailure(await failureAt("192.0.2.7"), fact);
  expect(told).toMatchObject({
    code: "address_missing",
    retryable: true,
    message: "cannot listen on 192.0.2.7:80: this machine does not have that address (yet)",
    hint: expect.stringContaining("Set service.port."),
  });
  expect(exitCodeOf(told)).toBe(75);
});

it.each([
  ["EADDRINUSE", "address_in_use", 75, "cannot listen on 192.0.2.7:80: another program does"],
  ["EAI_AGAIN", "address_missing", 75, "this machine cannot tell the address of that name (yet)"],
  ["EACCES", "address_refused", 2, "this program may not: a port below 1024 needs a right"],
  ["ENOTFOUND", "address_refused", 2, "cannot listen on 192.0.2.7:80: listen ENOTFOUND"],
])("%s is told as %s with its cause", (code, expected, exit, words) => {
  const cause = failure(code);
  const told = listenFailure(cause, fact);
  expect(told).toMatchObject({ code: expected, subject: fact.subject, cause });
  expect(told.message).toContain(words);
  expect(told.hint).toContain("Set service.port.");
  expect(exitCodeOf(told)).toBe(exit);
});
