import { expect, it } from "vitest";
import { inTurns } from "../../../src/kb/queue/runner.ts";
import type { WaitingJob } from "../../../src/kb/queue/queue.ts";

it("lets accounts take turns, those with fewer running jobs first", () => {
  let number = 0;
  const of = (accountId: string): WaitingJob => ({ number: ++number, accountId, line: "", crashes: 0 });
  const accounts = (due: readonly WaitingJob[], running: readonly WaitingJob[] = []): string =>
    inTurns(due, running, ({ accountId }) => accountId)
      .map(({ accountId }) => accountId)
      .join("");
  const due = ["a", "a", "a", "b", "b"].map(of);
  expect(accounts(due)).toBe("ababa");
  expect(accounts(due, ["a", "a"].map(of))).toBe("bbaaa");
});
