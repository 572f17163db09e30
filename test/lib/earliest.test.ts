import { expect, it } from "vitest";
import { earliest } from "../../src/lib/earliest.ts";

it("the earliest of no times is undefined, and unknown times do not count", () => {
  expect([earliest(), earliest(undefined, undefined)]).toEqual([undefined, undefined]);
  expect(earliest(3, undefined, 2)).toBe(2);
});
