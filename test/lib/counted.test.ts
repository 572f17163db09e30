import { expect, it } from "vitest";
import { counted, thousands } from "../../src/lib/counted.ts";

it("spells numbers, with their nouns", () => {
  expect([0, 999, 1000, 1_234_567].map(thousands)).toEqual(["0", "999", "1,000", "1,234,567"]);
  expect([0, 1, 2000].map((count) => counted(count, "file"))).toEqual(["0 files", "1 file", "2,000 files"]);
  expect([1, 2].map((count) => counted(count, "try", "tries"))).toEqual(["1 try", "2 tries"]);
});
