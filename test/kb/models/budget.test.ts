import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { KbsyncError } from "../../../src/lib/failure.ts";
import { openBudget, type Budget, type BudgetLimits } from "../../../src/kb/models/budget.ts";
import { openSqliteStore } from "../../../src/kb/store/sqlite/open.ts";
import type { Store } from "../../../src/kb/store/store.ts";

let store: Store;
beforeAll(async () => {
  store = await openSqliteStore();
});
afterAll(() => store.close());

/** A day of its own for each budget, late in a month. */
let days = 0;
function open(limits: BudgetLimits, atMs = Date.UTC(2026, days++, 30, 23, 59, 0)): Budget {
  return openBudget({
    ...limits,
    records: store.records,
    refuse: (message, seconds) =>
      new KbsyncError(message, { code: "budget_spent", retryAfterSeconds: seconds }),
    nowMs: () => atMs,
  });
}

describe("a budget", () => {
  it("a budget counts a call at its most until it is settled", async () => {
    const budget = open({ perDay: 10 });
    const settle = await budget.reserve("chat", 4);
    expect(await budget.spent()).toEqual({ day: 4, month: 4 });
    await settle(1.5);
    expect(await budget.spent()).toEqual({ day: 1.5, month: 1.5 });
  });

  it("refuses a call that would exceed it, with the time until the next day", async () => {
    const budget = open({ perDay: 1 });
    await (
      await budget.reserve("embedding", 1)
    )(1);
    await expect(budget.reserve("embedding", 0.000_000_001)).rejects.toMatchObject({
      code: "budget_spent",
      retryAfterSeconds: 60,
      message: expect.stringContaining("1 per day"),
    });
  });

  it("embeds nothing more on a day once a text was refused, whatever its length", async () => {
    const budget = open({ perDay: 1 });
    await expect(budget.reserve("embedding", 2)).rejects.toThrow("is spent");
    await expect(budget.reserve("embedding", 0.1)).rejects.toThrow("is spent");
    await (
      await budget.reserve("chat", 0.1)
    )(0.1);
  });

  it("adds up the days of a month", async () => {
    const day = Date.UTC(2030, 0, 5);
    const first = open({ perMonth: 3 }, day);
    await (
      await first.reserve("chat", 2)
    )(2);
    const next = open({ perMonth: 3 }, day + 86_400_000);
    await expect(next.reserve("chat", 2)).rejects.toMatchObject({
      message: expect.stringContaining("3 per month"),
    });
    expect(await next.spent()).toEqual({ day: 0, month: 2 });
    const later = open({ perMonth: 3 }, Date.UTC(2030, 1, 1));
    await (
      await later.reserve("chat", 2)
    )(2);
  });

  it("a budget is never exceeded, and spent to its end, by calls that run at once", async () => {
    const budget = open({ perDay: 1 });
    let highest = 0;
    const call = async (at: number): Promise<boolean> => {
      try {
        const settle = await budget.reserve("chat", 0.3);
        highest = Math.max(highest, (await budget.spent()).day);
        await settle(0.01 * ((at % 3) + 1));
        return true;
      } catch {
        return false;
      }
    };
    const done = await Promise.all(Array.from({ length: 60 }, (_, at) => call(at)));
    const { day } = await budget.spent();
    expect(highest).toBeLessThanOrEqual(1);
    expect(day).toBeLessThanOrEqual(1);
    // Nobody was refused while reservations alone stood in the way.
    expect(day).toBeGreaterThan(0.7);
    expect(done.filter(Boolean).length).toBeGreaterThan(30);
  });

  it("refuses no call because of another that was settled while the store answered", async () => {
    const records = {
      settleSpending: (change: Parameters<typeof store.records.settleSpending>[0]) =>
        store.records.settleSpending(change),
      spent: (day: string) => store.records.spent(day),
      spend: async (asked: Parameters<typeof store.records.spend>[0]) => {
        const answer = await store.records.spend(asked);
        if (!answer.isGranted) await settle(0.1);
        return answer;
      },
    };
    const budget = openBudget({
      perDay: 1,
      records,
      refuse: (message) => new Error(message),
      nowMs: () => Date.UTC(2032, 0, 1),
    });
    const settle = await budget.reserve("chat", 0.8);
    await (
      await budget.reserve("chat", 0.5)
    )(0.5);
    expect(await budget.spent()).toEqual({ day: 0.6, month: 0.6 });
  });

  it("a budget still counts what was in progress when its process ended", async () => {
    const at = Date.UTC(2031, 0, 1);
    await open({ perDay: 1 }, at).reserve("chat", 0.8);
    const restarted = open({ perDay: 1 }, at);
    await expect(restarted.reserve("chat", 0.5)).rejects.toMatchObject({ code: "budget_spent" });
  });
});
