import { expect, it } from "vitest";
import { activityLine, withFolder } from "../../../src/cli/commands/activity.ts";

const renamed = {
  atMs: 0,
  source: "/home/docs",
  path: "b.md",
  from: "a.md",
  docId: "d",
  action: "move",
  outcome: "done",
  durationMs: 1,
  message: undefined,
} as const;

it("names a file by its path in the source if there is one source", () => {
  expect(activityLine(withFolder(renamed, 1))).toMatch(/ move {6}a\.md -> b\.md\n$/);
});

it("names a file by its whole path if there are several sources", () => {
  expect(activityLine(withFolder(renamed, 2))).toMatch(
    / move {6}\/home\/docs\/a\.md -> \/home\/docs\/b\.md\n$/,
  );
});

it("leaves an entry about a source as a whole as it is", () => {
  expect(withFolder({ source: "/home/docs", path: "" }, 2)).toEqual({ source: "/home/docs", path: "" });
});

it.each([
  ["done", undefined, "a.md"],
  ["done", "left out: .gitignore", "a.md: left out: .gitignore"],
  ["refused", "too large", "a.md: refused, too large"],
  ["parked", "no answer", "a.md: tried again later, no answer"],
  ["parked", undefined, "a.md: tried again later"],
] as const)("says what became of an action that is %s with the message %s", (outcome, message, words) => {
  const line = activityLine({ ...renamed, from: undefined, path: "a.md", outcome, message });
  expect(line.trimEnd().endsWith(` ${words}`)).toBe(true);
});
