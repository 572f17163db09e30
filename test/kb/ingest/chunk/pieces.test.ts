import { expect, it } from "vitest";
import { isLowerCase } from "../../../../src/kb/ingest/chunk/pieces.ts";

it("exactly the letters from a to z are lower case", () => {
  const units = Array.from({ length: 0x10000 }, (_, code) => code);
  expect(String.fromCharCode(...units.filter(isLowerCase))).toBe("abcdefghijklmnopqrstuvwxyz");
});
