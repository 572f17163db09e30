import type { Spending } from "../../spending.ts";
import type { DaySpending, HourUsage } from "../../usage.ts";
import type { Records } from "../../records.ts";
import type { Transaction } from "../database/connections.ts";

/** The use of accounts, inside a transaction. */
export function usageOn(
  tx: Transaction,
): Pick<Records, "addUsage" | "usage" | "purgeUsage" | "spendingSince"> {
  return {
    async addUsage({ searches, ...added }) {
      // Locks the hour, so that the counts of two processes are added up.
      const before = await tx.get<{ searches: string }>(
        `INSERT INTO usage (account_id, hour, documents, queued, searches)
        VALUES (@accountId, @hour, @documents, @queued, '[]')
        ON CONFLICT (account_id, hour) DO UPDATE SET documents = excluded.documents,
          queued = greatest(usage.queued, excluded.queued)
        RETURNING searches`,
        added,
      );
      const counts = countsOf(before?.searches ?? "[]");
      const length = Math.max(counts.length, searches.length);
      const sums = Array.from({ length }, (_, at) => (counts[at] ?? 0) + (searches[at] ?? 0));
      await tx.run("UPDATE usage SET searches = @searches WHERE account_id = @accountId AND hour = @hour", {
        accountId: added.accountId,
        hour: added.hour,
        searches: JSON.stringify(sums),
      });
    },
    usage: async (query) => {
      const rows = await tx.all<Omit<HourUsage, "searches"> & { readonly searches: string }>(
        `SELECT hour, documents, queued, searches FROM usage
        WHERE account_id = @accountId AND hour >= coalesce(
          (SELECT max(hour) FROM usage WHERE account_id = @accountId AND hour < @fromHour), @fromHour)
        ORDER BY hour`,
        { ...query },
      );
      return rows.map(({ searches, ...row }): HourUsage =>
        Object.assign(row, { searches: countsOf(searches) }),
      );
    },
    purgeUsage: (hour, limit) =>
      tx.run(
        `DELETE FROM usage WHERE (account_id, hour) IN (
          SELECT account_id, hour FROM usage AS old
          WHERE hour < @hour AND EXISTS (SELECT 1 FROM usage WHERE account_id = old.account_id AND hour > old.hour)
          LIMIT @limit)`,
        { hour, limit },
      ),
    spendingSince: ({ accountId, fromDay }) =>
      accountId === undefined
        ? tx.all<DaySpending>(
            "SELECT day, sum(nanos) AS nanos FROM spending WHERE day >= @fromDay GROUP BY day ORDER BY day",
            { fromDay },
          )
        : tx.all<DaySpending>(
            "SELECT day, nanos FROM account_spending WHERE account_id = @accountId AND day >= @fromDay ORDER BY day",
            { accountId, fromDay },
          ),
  };
}

/** The cost of models, inside a transaction. */
export function spendingOn(tx: Transaction): Pick<Records, "spend" | "settleSpending" | "spent"> {
  const spent = async (day: string): Promise<Spending> => {
    const sums = await tx.get<Spending>(
      `SELECT coalesce(sum(nanos) FILTER (WHERE day = @day), 0) AS day, coalesce(sum(nanos), 0) AS month FROM spending
      WHERE day BETWEEN @month || '-01' AND @month || '-31'`,
      { day, month: day.slice(0, 7) },
    );
    return sums ?? { day: 0, month: 0 };
  };
  const add: Records["settleSpending"] = async ({ accountId, spender, day, nanos }) => {
    await tx.run(
      `INSERT INTO spending (day, spender, nanos) VALUES (@day, @spender, @nanos)
      ON CONFLICT (day, spender) DO UPDATE SET nanos = greatest(0, spending.nanos + excluded.nanos)`,
      { spender, day, nanos },
    );
    if (accountId === undefined) return;
    await tx.run(
      `INSERT INTO account_spending (account_id, day, nanos) VALUES (@accountId, @day, @nanos)
      ON CONFLICT (account_id, day) DO UPDATE SET nanos = greatest(0, account_spending.nanos + excluded.nanos)`,
      { accountId, day, nanos },
    );
  };
  return {
    spent,
    settleSpending: add,
    async spend({ accountId, spender, day, nanos, dayMax, monthMax }) {
      // Only one process at a time may ask whether the money suffices.
      if (dayMax !== null || monthMax !== null)
        await tx.run(`SELECT pg_advisory_xact_lock(${SPEND_LOCK}, 0)`);
      const before = await spent(day);
      const isGranted =
        before.day + nanos <= (dayMax ?? Infinity) && before.month + nanos <= (monthMax ?? Infinity);
      if (!isGranted) return { ...before, isGranted };
      await add({ accountId, day, spender, nanos });
      return { day: before.day + nanos, month: before.month + nanos, isGranted };
    },
  };
}

/** Family of the advisory lock; the queue has others. */
const SPEND_LOCK = 3;

function countsOf(json: string): readonly number[] {
  return JSON.parse(json) as readonly number[]; // written by addUsage
}
