import { expect, it } from "vitest";
import { linkedIno } from "../../../src/sync/disk/linked-ino.ts";

it("a file behind a link has a number of its own, the same each time, for every link and every file", () => {
  const numbers = [linkedIno("/1", 7), linkedIno("/2", 7), linkedIno("/1", 8), linkedIno("/1/2", 7)];
  expect(new Set([7, ...numbers]).size).toBe(5);
  expect(linkedIno("/1", 7)).toBe(numbers[0]);
  for (const number of numbers) {
    expect(Number.isSafeInteger(number)).toBe(true);
    expect(number).toBeGreaterThan(1);
  }
});
