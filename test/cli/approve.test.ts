import { expect, it } from "vitest";
import { approveWords } from "../../src/cli/approve.ts";

it.each([
  { name: "nothing", approvals: [], isRunning: true, words: "nothing is held\n" },
  {
    name: "one delete, by the daemon",
    approvals: [{ source: "/docs", held: 1, reason: "1 of 2 files" }],
    isRunning: true,
    words: "approved: /docs, 1 delete (1 of 2 files); the daemon does it now\n",
  },
  {
    name: "many, of several sources, by the next pass",
    approvals: [
      { source: "/a", held: 1200, reason: "too many" },
      { source: "/b", held: 2, reason: "another folder" },
    ],
    isRunning: false,
    words:
      "approved: /a, 1,200 deletes (too many); the next pass does them\napproved: /b, 2 deletes (another folder); the next pass does them\n",
  },
  {
    name: "what the service lost, by the daemon",
    approvals: [{ source: "/docs", held: 0, reason: "the service has lost 10 of 10 resources" }],
    isRunning: true,
    words: "approved: /docs (the service has lost 10 of 10 resources); the daemon goes on now\n",
  },
  {
    name: "what the service lost, by the next pass",
    approvals: [{ source: "/docs", held: 0, reason: "the service has lost 10 of 10 resources" }],
    isRunning: false,
    words: "approved: /docs (the service has lost 10 of 10 resources); the next pass goes on there\n",
  },
])("approve says what was agreed to: $name", ({ approvals, isRunning, words }) => {
  expect(approveWords(approvals, isRunning)).toBe(words);
});
