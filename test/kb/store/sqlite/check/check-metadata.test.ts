import { expect, it } from "vitest";
import { sumWith } from "../../../../../src/kb/store/sqlite/check/check-metadata.ts";

const sumOf = (items: readonly string[]): number => items.reduce(sumWith, 0);

it("a sum is the same in any order, and another for other items, once more or less", () => {
  expect(sumOf(["a", "b", "c"])).toBe(sumOf(["c", "a", "b"]));
  const others = [[], ["a"], ["b"], ["a", "a"], ["a", "b"], ["ab"], ["ba"], ["a", "b", "c"]].map(sumOf);
  expect(new Set(others).size).toBe(others.length);
});

it("both halves of a hash tell items apart", () => {
  const halves = Array.from({ length: 1000 }, (_, at) => sumWith(0, `item ${at}`)).map((sum) => [
    Math.floor(sum / 2 ** 26),
    sum % 2 ** 26,
  ]);
  for (const half of [0, 1]) expect(new Set(halves.map((each) => each[half])).size).toBe(1000);
  // The first half is FNV-1a as published (http://www.isthe.com/chongo/tech/comp/fnv/).
  expect(Math.floor(sumWith(0, "a") / 2 ** 26)).toBe(0xe40c292c >>> 6);
});

it("a sum stays an exact integer, whatever is added", () => {
  const items = Array.from({ length: 5000 }, (_, at) => `item ${at}`);
  const sum = sumOf(items);
  expect(Number.isSafeInteger(sum) && sum < 2 ** 52).toBe(true);
  expect(sumOf(items.toReversed())).toBe(sum);
});
