import type { Spending } from "../../spending.ts";
import type { Inside } from "../../methods.ts";
import type { Connection } from "../database/connection.ts";

/** Prepares the statements on the writing connection. Each runs inside a transaction of the caller. */
export function prepareSpendingWrites(
  db: Connection,
): Pick<Inside<"write">["records"], "spend" | "settleSpending"> {
  const { spent } = prepareSpendingReads(db);
  const add = db.prepare(`
    INSERT INTO spending (day, spender, nanos) VALUES (@day, @spender, @nanos)
    ON CONFLICT (day, spender) DO UPDATE SET nanos = max(0, nanos + excluded.nanos)`);
  const addOwn = db.prepare(`
    INSERT INTO account_spending (account_id, day, nanos) VALUES (@accountId, @day, @nanos)
    ON CONFLICT (account_id, day) DO UPDATE SET nanos = max(0, nanos + excluded.nanos)`);
  const addAll = (change: Parameters<Inside<"write">["records"]["settleSpending"]>[0]): void => {
    const { accountId, spender, day, nanos } = change;
    add.run({ spender, day, nanos });
    if (accountId !== undefined) addOwn.run({ accountId, day, nanos });
  };
  return {
    spend: ({ accountId, spender, day, nanos, dayMax, monthMax }) => {
      const before = spent(day);
      const isGranted =
        before.day + nanos <= (dayMax ?? Infinity) && before.month + nanos <= (monthMax ?? Infinity);
      if (!isGranted) return { ...before, isGranted };
      addAll({ accountId, day, spender, nanos });
      return { day: before.day + nanos, month: before.month + nanos, isGranted };
    },
    settleSpending: addAll,
  };
}

/** Prepares the statements on a connection of either kind. */
export function prepareSpendingReads(db: Connection): Pick<Inside<"lookup">["records"], "spent"> {
  const sums = db.prepare<{ day: string; month: string }, Spending>(`
    SELECT total(nanos) FILTER (WHERE day = @day) AS day, total(nanos) AS month FROM spending
    WHERE day BETWEEN @month || '-01' AND @month || '-31'`);
  return { spent: (day) => sums.get({ day, month: day.slice(0, 7) }) ?? { day: 0, month: 0 } };
}
