import { beforeEach, expect, it } from "vitest";
import { openMountWarnings } from "../../../src/sync/source/warnings.ts";
import { openRules } from "../../../src/sync/rules/rules.ts";
import { MOUNTED_OVER, UNMOUNTED } from "../../../src/sync/rules/sub-mounts.ts";
import { sourceAt } from "../scan/tree.ts";

let warnings: Error[];
let warn: ReturnType<typeof openMountWarnings>;
beforeEach(() => {
  warnings = [];
  warn = openMountWarnings(openRules(sourceAt("/nowhere", { exclude: ["left-out/**"] })), (error) =>
    warnings.push(error),
  );
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
