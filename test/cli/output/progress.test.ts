import { expect, it } from "vitest";
import { duration } from "../../../src/cli/output/progress.ts";

it("spells times", () => {
  expect([0.2, 89, 120, 7500].map(duration)).toEqual(["1 s", "89 s", "2 min", "2 h 5 min"]);
});
