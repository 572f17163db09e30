import { beforeEach, expect, it } from "vitest";
import { isShed, openShedLog, type ShedLog } from "../../../../src/kb/http/limits/shed-log.ts";

let nowMs = 0;
let lines: [facts: unknown, message: string][] = [];
let report: ShedLog;
beforeEach(() => {
  nowMs = 5000;
  lines = [];
  report = openShedLog(
    { warn: (facts: unknown, message = "") => void lines.push([facts, message]) },
    () => nowMs,
  );
});

it("logs the first refusal at once, and later ones once a minute with their number", () => {
  for (const atMs of [5000, 5001, 64_999, 65_000, 124_999, 125_000]) {
    nowMs = atMs;
    report("overloaded", "Full.");
  }
  const line = (requests: number) => [{ code: "overloaded", requests }, "requests are refused: Full."];
  expect(lines).toEqual([line(1), line(3), line(2)]);
});

it("counts each code separately", () => {
  for (const code of ["overloaded", "starting", "overloaded"]) report(code, "Later.");
  expect(lines.map(([facts]) => facts)).toEqual([
    { code: "overloaded", requests: 1 },
    { code: "starting", requests: 1 },
  ]);
});

it("counts refusals for load, and no others", () => {
  const codes = ["disk_full", "model_busy", "overloaded", "starting", "store_busy"];
  expect(codes.filter(isShed)).toEqual(codes);
  expect(["draining", "internal_error", "key_unknown", ""].filter(isShed)).toEqual([]);
});
