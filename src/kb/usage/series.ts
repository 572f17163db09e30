import type { UsagePoint, UsageQuery } from "../../wire/usage.ts";
import type { DaySpending, HourUsage } from "../store/usage.ts";

export const HOUR_MS = 3_600_000;
const STEP_HOURS = { hour: 1, day: 24 } as const;
const NANOS = 1_000_000_000;

/**
 * Upper ends of the ranges in which durations of searches are counted, in milliseconds; the last range has none. Stored counts refer to
 * their positions, so the list may only grow at its end.
 */
export const LATENCY_MS: readonly number[] = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000];

/** Returns the range of a duration. Pure. */
export function rangeOf(ms: number): number {
  const at = LATENCY_MS.findIndex((end) => ms <= end);
  return at === -1 ? LATENCY_MS.length : at;
}

/** Returns the first hour of a series that ends now. Pure. */
export function firstHour({ step, count }: UsageQuery, nowMs: number): number {
  const hours = STEP_HOURS[step];
  const current = Math.floor(nowMs / HOUR_MS / hours);
  return (current - count + 1) * hours;
}

/**
 * Returns the points of a series that ends now. `hours` ascend, with the last one before the series; `spending` is that of days, of the
 * account and of all, null if it is not to be shown. Pure.
 */
export function seriesOf(
  query: UsageQuery,
  hours: readonly HourUsage[],
  spending: Readonly<Record<"own" | "all", readonly DaySpending[] | null>>,
  nowMs: number,
): UsagePoint[] {
  const from = firstHour(query, nowMs);
  const length = STEP_HOURS[query.step];
  const costOn = (days: readonly DaySpending[] | null, atIso: string): number | null =>
    query.step === "hour" || days === null
      ? null
      : (days.find(({ day }) => atIso.startsWith(day))?.nanos ?? 0) / NANOS;
  let documents = hours.findLast(({ hour }) => hour < from)?.documents ?? null;
  return Array.from({ length: query.count }, (_, at) => {
    const start = from + at * length;
    const own = hours.filter(({ hour }) => hour >= start && hour < start + length);
    documents = own.at(-1)?.documents ?? documents;
    const counts = sumOf(own.map(({ searches }) => searches));
    const searches = counts.reduce((sum, count) => sum + count, 0);
    const atIso = new Date(start * HOUR_MS).toISOString();
    return {
      at: atIso,
      documents,
      queued: Math.max(0, ...own.map(({ queued }) => queued)),
      searches,
      latency:
        searches === 0 ? null : { p50Ms: percentileOf(counts, 0.5), p95Ms: percentileOf(counts, 0.95) },
      cost: costOn(spending.own, atIso),
      costOfAll: costOn(spending.all, atIso),
    };
  });
}

function sumOf(lists: readonly (readonly number[])[]): readonly number[] {
  return Array.from({ length: LATENCY_MS.length + 1 }, (_, at) =>
    lists.reduce((sum, list) => sum + (list[at] ?? 0), 0),
  );
}

/** Estimates a percentile of durations that are counted by range, as if those of a range were spread evenly over it. Pure. */
export function percentileOf(counts: readonly number[], share: number): number {
  const wanted = share * counts.reduce((sum, count) => sum + count, 0);
  let below = 0;
  for (const [at, count] of counts.entries()) {
    if (count > 0 && below + count >= wanted) {
      const start = LATENCY_MS[at - 1] ?? 0;
      const end = LATENCY_MS[at] ?? start; // nothing is known of the last range but its start
      return start + ((end - start) * (wanted - below)) / count;
    }
    below += count;
  }
  return 0;
}
