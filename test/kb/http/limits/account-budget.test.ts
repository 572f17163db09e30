import { expect, it } from "vitest";
import { openAccountBudget } from "../../../../src/kb/http/limits/upload-pace.ts";

const RULE = { perSecond: 10, burst: 3 };

/** Spends for one account at these times; returns how long the next one would wait at each. */
function waitsOf(times: readonly number[]): number[] {
  const budget = openAccountBudget(RULE);
  return times.map((atMs) => {
    budget.spend("a", atMs);
    return Math.round(budget.waitMs("a", atMs));
  });
}

it.each([
  ["admits a burst, then one item per tenth of a second", [0, 0, 0, 0, 0], [0, 0, 0, 100, 200]],
  ["refills a budget at its rate", [0, 0, 0, 0, 100, 200], [0, 0, 0, 100, 100, 100]],
  ["never fills a budget above a burst", [0, 3_600_000, 3_600_000, 3_600_000, 3_600_000], [0, 0, 0, 0, 100]],
])("%s", (_name, times, waits) => {
  expect(waitsOf(times)).toEqual(waits);
});

it("admits an item at the announced time", () => {
  const budget = openAccountBudget(RULE);
  for (let count = 0; count < 20; count += 1) budget.spend("a", 0);
  const waitMs = budget.waitMs("a", 0);
  expect(budget.waitMs("a", waitMs)).toBe(0);
  expect(budget.waitMs("a", waitMs - 1)).toBeGreaterThan(0);
});

it("counts each account separately", () => {
  const budget = openAccountBudget(RULE);
  for (let count = 0; count < 20; count += 1) budget.spend("a", 0);
  expect(budget.waitMs("b", 0)).toBe(0);
});

it("keeps accounts above their budget, however many others there are", () => {
  const budget = openAccountBudget(RULE);
  for (let count = 0; count < 20; count += 1) budget.spend("a", 0);
  for (let account = 0; account < 3000; account += 1) budget.spend(String(account), account / 2);
  expect(budget.waitMs("a", 1500)).toBeGreaterThan(0);
});

it("admits another item for each that is taken back", () => {
  const budget = openAccountBudget(RULE);
  for (let count = 0; count < 5; count += 1) budget.spend("a", 0);
  budget.refund("a");
  budget.refund("b");
  expect(Math.round(budget.waitMs("a", 0))).toBe(100);
  expect(budget.waitMs("b", 0)).toBe(0);
});
