import { expect, it } from "vitest";
import { linkedIno } from "../../../../src/sync/scan/disk/linked-ino.ts";

it("gives a file behind a link a constant number, different for every link and file", () => {
  const numbers = [linkedIno("/1", 7), linkedIno("/2", 7), linkedIno("/1", 8), linkedIno("/1/2", 7)];
  expect(new Set([7, ...numbers]).size).toBe(5);
  expect(linkedIno("/1", 7)).toBe(numbers[0]);
  for (const number of numbers) {
    expect(Number.isSafeInteger(number)).toBe(true);
    expect(number).toBeGreaterThan(1);
  }
});
