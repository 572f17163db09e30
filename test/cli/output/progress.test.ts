import { expect, it } from "vitest";
import { duration, thousands } from "../../../src/cli/output/progress.ts";

it("spells numbers and times", () => {
  expect([0, 999, 1000, 1_234_567].map(thousands)).toEqual(["0", "999", "1,000", "1,234,567"]);
  expect([0.2, 89, 120, 7500].map(duration)).toEqual(["1 s", "89 s", "2 min", "2 h 5 min"]);
});
