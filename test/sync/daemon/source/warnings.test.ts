import { beforeEach, expect, it } from "vitest";
import { openWarnings } from "../../../../src/sync/daemon/source/warnings.ts";
import type { Unreadable } from "../../../../src/sync/plan/model.ts";
import { openRules } from "../../../../src/sync/scan/rules/rules.ts";
import { MOUNTED_OVER, type SubMounts, UNMOUNTED } from "../../../../src/sync/scan/rules/sub-mounts.ts";
import { sourceAt } from "../../scan/tree.ts";

let warnings: Error[];
let warn: (closed: readonly Unreadable[]) => void;
beforeEach(() => {
  warnings = [];
  let closed: readonly Unreadable[] = [];
  const rules = openRules(sourceAt("/nowhere", { exclude: ["left-out/**"] }));
  const mounts = { closed: () => closed } as unknown as SubMounts;
  const problems = openWarnings({ ...rules, mounts }, (error) => warnings.push(error));
  warn = (now) => {
    closed = now;
    problems.update(false);
  };
});

it("each changed mount is reported once, and again if it was in order meanwhile", () => {
  warn([{ path: "a", code: UNMOUNTED }]);
  warn([
    { path: "a", code: UNMOUNTED },
    { path: "b", code: MOUNTED_OVER },
  ]);
  const facts = { code: "mount_changed", retryable: true };
  expect(warnings).toMatchObject([
    {
      ...facts,
      subject: "/nowhere/a",
      message: expect.stringContaining("/nowhere/a: what was mounted there is no longer mounted") as string,
    },
    { ...facts, message: expect.stringContaining("/nowhere/b: something is mounted over it") as string },
  ]);
  warn([]);
  warn([{ path: "a", code: UNMOUNTED }]);
  expect(warnings).toHaveLength(3);
});

it("a mount that became something else is reported again", () => {
  warn([{ path: "a", code: UNMOUNTED }]);
  warn([{ path: "a", code: MOUNTED_OVER }]);
  expect(warnings).toHaveLength(2);
});

it("a mount that the rules exclude is not reported", () => {
  warn([{ path: ".hidden", code: UNMOUNTED }]);
  expect(warnings).toEqual([]);
});
