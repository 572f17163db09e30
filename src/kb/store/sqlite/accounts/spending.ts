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
  return {
    spend: ({ spender, day, nanos, dayMax, monthMax }) => {
      const before = spent(day);
      const isGranted =
        before.day + nanos <= (dayMax ?? Infinity) && before.month + nanos <= (monthMax ?? Infinity);
      if (!isGranted) return { ...before, isGranted };
      add.run({ day, spender, nanos });
      return { day: before.day + nanos, month: before.month + nanos, isGranted };
    },
    settleSpending: (change) => void add.run(change),
  };
}

/** Prepares the statements on a connection of either kind. */
export function prepareSpendingReads(db: Connection): Pick<Inside<"lookup">["records"], "spent"> {
  const sums = db.prepare<{ day: string; month: string }, Spending>(`
    SELECT total(nanos) FILTER (WHERE day = @day) AS day, total(nanos) AS month FROM spending
    WHERE day BETWEEN @month || '-01' AND @month || '-31'`);
  return { spent: (day) => sums.get({ day, month: day.slice(0, 7) }) ?? { day: 0, month: 0 } };
}
