import { openTurns } from "../../lib/turns.ts";
import type { SpendingRecords, Spender } from "../store/spending.ts";

/** Largest sums that models may cost, in the currency of the prices; undefined: any. Days and months are those of UTC. */
export interface BudgetLimits {
  readonly perDay?: number | undefined;
  readonly perMonth?: number | undefined;
}

/** The cost of models so far. Calls in progress count at their maximum. */
export interface Spent {
  readonly day: number;
  readonly month: number;
}

/** Replaces the reservation of a call by its cost. */
export type Settle = (cost: number) => Promise<void>;

/**
 * Caps what models cost. A call is counted before it is made, at the most that it may cost, in a transaction that checks the limits:
 * whatever runs at once, and whenever the process ends, the counted sum never exceeds them and never falls short of the calls made.
 */
export interface Budget {
  /**
   * Counts a call that may cost as much. Waits for calls in progress if the limits allow it only without their reservations. Throws
   * what `refuse` returns if they do not allow it. A call without `settle` stays counted as reserved. `accountId`: whose call it is.
   */
  reserve(spender: Spender, costMax: number, accountId?: string): Promise<Settle>;
  spent(): Promise<Spent>;
}

export interface BudgetParts extends BudgetLimits {
  readonly records: SpendingRecords;
  /** Makes the error of a call that the limits do not allow. */
  readonly refuse: (message: string, retryAfterSeconds: number) => Error;
  readonly nowMs: () => number;
}

/** The store counts in whole billionths, so that a token of a cheap model counts exactly. */
const NANOS = 1_000_000_000;

/** Opens the budget. */
export function openBudget({ records, perDay, perMonth, refuse, nowMs }: BudgetParts): Budget {
  const dayMax = nanosOf(perDay);
  const monthMax = nanosOf(perMonth);
  /** One call at a time asks for its part, so that those that wait do not stand in each other's way. */
  const turns = openTurns();
  let reserved = 0;
  let settlements = 0;
  let onSettled: (() => void) | undefined;
  /**
   * Day on which embedding is over. A smaller text might still fit, but a model that embeds some texts and not others looks as if
   * those were faulty.
   */
  let closedDay: string | undefined;

  const refusal = (spent: { readonly day: number }, nanos: number): Error => {
    const isDay = dayMax !== null && spent.day + nanos > dayMax;
    const until = isDay ? "day" : "month";
    const limit = (isDay ? perDay : perMonth) ?? 0;
    return refuse(
      `The budget of ${limit} per ${until} for models is spent.`,
      secondsUntilNext(until, nowMs()),
    );
  };
  const attempt = async (spender: Spender, nanos: number, accountId: string | undefined): Promise<Settle> => {
    for (;;) {
      const day = dayOf(nowMs());
      if (spender === "embedding" && closedDay === day) throw refusal(await records.spent(day), nanos);
      const settledBefore = settlements;
      const { isGranted, ...spent } = await records.spend({
        accountId,
        spender,
        day,
        nanos,
        dayMax,
        monthMax,
      });
      if (isGranted) {
        reserved += 1;
        return settleOf({ accountId, spender, day }, nanos);
      }
      if (settlements !== settledBefore) continue;
      if (reserved === 0) {
        if (spender === "embedding") closedDay = day;
        throw refusal(spent, nanos);
      }
      await new Promise<void>((resolve) => (onSettled = resolve));
    }
  };
  const settleOf =
    (
      call: Pick<Parameters<SpendingRecords["spend"]>[0], "accountId" | "spender" | "day">,
      nanos: number,
    ): Settle =>
    async (cost) => {
      try {
        await records.settleSpending({ ...call, nanos: Math.ceil(cost * NANOS) - nanos });
      } finally {
        reserved -= 1;
        settlements += 1;
        onSettled?.();
      }
    };
  const reserve: Budget["reserve"] = (spender, costMax, accountId) =>
    turns.run("", () => attempt(spender, Math.ceil(costMax * NANOS), accountId));
  return {
    reserve,
    spent: async () => {
      const { day, month } = await records.spent(dayOf(nowMs()));
      return { day: day / NANOS, month: month / NANOS };
    },
  };
}

function nanosOf(limit: number | undefined): number | null {
  return limit === undefined ? null : Math.floor(limit * NANOS);
}

function dayOf(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10);
}

function secondsUntilNext(period: "day" | "month", nowMs: number): number {
  const now = new Date(nowMs);
  const next =
    period === "day"
      ? Date.UTC(now.getUTCFullYear(), now.getUTCMonth(), now.getUTCDate() + 1)
      : Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1, 1);
  return Math.ceil((next - nowMs) / 1000);
}
