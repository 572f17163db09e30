import { expect, it } from "vitest";
import { endOf } from "../../src/cli/program.ts";
import { KbsyncError } from "../../src/lib/failure.ts";

const stopped = AbortSignal.abort();
const running = new AbortController().signal;

it.each([
  ["the signal's own reason", stopped, stopped.reason, 130, ""],
  ["whatever broke off because of it", stopped, new Error("the daemon is stopping"), 130, ""],
  [
    "a failure that was expected",
    stopped,
    new KbsyncError("x", { code: "ledger_damaged" }),
    2,
    "kbsync: x\n",
  ],
  ["a search that is refused", running, new KbsyncError("x", { code: "service_refused" }), 3, "kbsync: x\n"],
])("ends with the right status after %s", (_name, signal, error, code, words) => {
  expect(endOf(error, signal)).toEqual({ code, words });
});

it("calls what nobody expected a defect", () => {
  const { code, words } = endOf(new Error("what"), running);
  expect(code).toBe(70);
  expect(words).toContain("a defect in kbsync");
});
