import { expect, it } from "vitest";
import { openLineBudget } from "../../../src/kb/http/line-budget.ts";

const RULE = { perSecond: 10, burst: 3 };

/** Sends unreadable lines of one account at these times; returns how long the next line would wait at each. */
function waitsOf(times: readonly number[]): number[] {
  const budget = openLineBudget(RULE);
  return times.map((atMs) => {
    budget.spend("a", atMs);
    return Math.round(budget.waitMs("a", atMs));
  });
}

it.each([
  ["lets a burst through, then one line in a tenth of a second", [0, 0, 0, 0, 0], [0, 0, 0, 100, 200]],
  ["refills at its rate", [0, 0, 0, 0, 100, 200], [0, 0, 0, 100, 100, 100]],
  ["never holds more than a burst", [0, 3_600_000, 3_600_000, 3_600_000, 3_600_000], [0, 0, 0, 0, 100]],
])("%s", (_name, times, waits) => {
  expect(waitsOf(times)).toEqual(waits);
});

it("lets a line through at the time that it announced", () => {
  const budget = openLineBudget(RULE);
  for (let line = 0; line < 20; line += 1) budget.spend("a", 0);
  const waitMs = budget.waitMs("a", 0);
  expect(budget.waitMs("a", waitMs)).toBe(0);
  expect(budget.waitMs("a", waitMs - 1)).toBeGreaterThan(0);
});

it("counts each account by itself", () => {
  const budget = openLineBudget(RULE);
  for (let line = 0; line < 20; line += 1) budget.spend("a", 0);
  expect(budget.waitMs("b", 0)).toBe(0);
});

it("remembers accounts that are over their budget, however many others there are", () => {
  const budget = openLineBudget(RULE);
  for (let line = 0; line < 20; line += 1) budget.spend("a", 0);
  for (let account = 0; account < 3000; account += 1) budget.spend(String(account), account / 2);
  expect(budget.waitMs("a", 1500)).toBeGreaterThan(0);
});
