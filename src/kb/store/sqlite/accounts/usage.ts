import type { Inside } from "../../methods.ts";
import type { DaySpending, HourUsage } from "../../usage.ts";
import type { Connection } from "../database/connection.ts";

interface UsageRow {
  readonly hour: number;
  readonly documents: number;
  readonly queued: number;
  /** JSON array. */
  readonly searches: string;
}

/** Prepares the statements on the writing connection. Each runs inside a transaction of the caller. */
export function prepareUsageWrites(
  db: Connection,
): Pick<Inside<"write" | "free">["records"], "addUsage" | "purgeUsage"> {
  const select = db
    .prepare<[string, number], string>("SELECT searches FROM usage WHERE account_id = ? AND hour = ?")
    .pluck();
  const put = db.prepare(`
    INSERT INTO usage (account_id, hour, documents, queued, searches)
    VALUES (@accountId, @hour, @documents, @queued, @searches)
    ON CONFLICT (account_id, hour) DO UPDATE SET documents = excluded.documents,
      queued = max(queued, excluded.queued), searches = excluded.searches`);
  const purge = db.prepare<[number, number]>(`
    DELETE FROM usage WHERE (account_id, hour) IN (
      SELECT account_id, hour FROM usage AS old
      WHERE hour < ? AND EXISTS (
        SELECT 1 FROM usage WHERE account_id = old.account_id AND hour > old.hour)
      LIMIT ?)`);
  return {
    addUsage: ({ searches, ...added }) => {
      const before = countsOf(select.get(added.accountId, added.hour) ?? "[]");
      const length = Math.max(before.length, searches.length);
      const sums = Array.from({ length }, (_, at) => (before[at] ?? 0) + (searches[at] ?? 0));
      put.run({ ...added, searches: JSON.stringify(sums) });
    },
    purgeUsage: (hour, limit) => purge.run(hour, limit).changes,
  };
}

/** Prepares the statements on a connection of either kind. */
export function prepareUsageReads(
  db: Connection,
): Pick<Inside<"lookup">["records"], "usage" | "spendingSince"> {
  const rows = db.prepare<{ accountId: string; fromHour: number }, UsageRow>(`
    SELECT hour, documents, queued, searches FROM usage
    WHERE account_id = @accountId AND hour >= coalesce(
      (SELECT max(hour) FROM usage WHERE account_id = @accountId AND hour < @fromHour), @fromHour)
    ORDER BY hour`);
  const spending = db.prepare<[string], DaySpending>(
    "SELECT day, sum(nanos) AS nanos FROM spending WHERE day >= ? GROUP BY day ORDER BY day",
  );
  const own = db.prepare<[string, string], DaySpending>(
    "SELECT day, nanos FROM account_spending WHERE account_id = ? AND day >= ? ORDER BY day",
  );
  return {
    usage: (query) =>
      rows
        .all(query)
        .map(({ searches, ...row }): HourUsage => Object.assign(row, { searches: countsOf(searches) })),
    spendingSince: ({ accountId, fromDay }) =>
      accountId === undefined ? spending.all(fromDay) : own.all(accountId, fromDay),
  };
}

function countsOf(json: string): readonly number[] {
  return JSON.parse(json) as readonly number[]; // written by addUsage
}
