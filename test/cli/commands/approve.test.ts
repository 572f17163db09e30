import { expect, it } from "vitest";
import { approveWords, haltedWords, heldWords } from "../../../src/cli/commands/approve.ts";

it.each([
  { name: "nothing", approvals: [], isRunning: true, words: "nothing is held\n" },
  {
    name: "one delete, by the daemon",
    approvals: [{ source: "/docs", held: 1, reason: "1 of 2 files" }],
    isRunning: true,
    words: "approved: /docs, 1 delete (1 of 2 files); the daemon deletes it now\n",
  },
  {
    name: "many, of several sources, by the next pass",
    approvals: [
      { source: "/a", held: 1200, reason: "too many" },
      { source: "/b", held: 2, reason: "another folder" },
    ],
    isRunning: false,
    words:
      "approved: /a, 1,200 deletes (too many); the next sync deletes them\napproved: /b, 2 deletes (another folder); the next sync deletes them\n",
  },
  {
    name: "what the service lost, by the daemon",
    approvals: [{ source: "/docs", held: 0, reason: "the service has lost 10 of 10 resources" }],
    isRunning: true,
    words: "approved: /docs (the service has lost 10 of 10 resources); the daemon continues now\n",
  },
  {
    name: "what the service lost, by the next pass",
    approvals: [{ source: "/docs", held: 0, reason: "the service has lost 10 of 10 resources" }],
    isRunning: false,
    words: "approved: /docs (the service has lost 10 of 10 resources); the next sync continues with it\n",
  },
  {
    name: "another folder, without the question that was answered",
    approvals: [
      {
        source: "/docs",
        held: 9,
        reason: "the folder is on another device than before; is a disk not mounted?",
      },
    ],
    isRunning: false,
    words:
      "approved: /docs, 9 deletes (the folder is on another device than before); the next sync deletes them\n",
  },
])("approve says what was agreed to: $name", ({ approvals, isRunning, words }) => {
  expect(approveWords(approvals, isRunning)).toBe(words);
});

it("a dry run says what would be deleted, and what it would take to agree", () => {
  expect(heldWords([])).toBe("nothing is held\n");
  const reason = "the folder is on another device than before; is a disk not mounted?";
  expect(heldWords([{ source: "/docs", held: 1200, reason, token: "3f2a9c01" }])).toBe(
    `held: /docs, 1,200 deletes (${reason}); \`kbsync approve --token 3f2a9c01\` approves it\n`,
  );
  expect(heldWords([{ source: "/docs", held: 0, reason: "lost", token: "3f2a9c01" }])).toBe(
    "held: /docs (lost); `kbsync approve --token 3f2a9c01` approves it\n",
  );
});

it("a folder that is away is named, for to that nobody can agree", () => {
  const halted = { path: "/docs", holdReason: "the folder is missing", remedy: "mount it or put it back" };
  expect(haltedWords([halted])).toBe(
    "nothing to approve: /docs: the folder is missing (mount it or put it back)\n",
  );
  expect(haltedWords([])).toBe("nothing is held\n");
});
