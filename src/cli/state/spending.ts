import { existsSync } from "node:fs";
import type { Config } from "../../config/load.ts";
import type { StateFolder } from "./state-folder.ts";

/** What models of other services have cost, and the caps, in the currency of the prices. */
export interface Spending {
  /** In UTC, as the budget counts: calls in progress at the most that they may cost. */
  readonly today: number;
  readonly thisMonth: number;
  /** Null: any. */
  readonly perDay: number | null;
  readonly perMonth: number | null;
}

/** The store counts in billionths. */
const NANOS = 1_000_000_000;

/** Reads it from the store of the embedded service, whether that runs or not. Null: nothing is capped, or there is no store yet. */
export async function readSpending(
  { service, kb }: Pick<Config, "service" | "kb">,
  state: StateFolder,
  nowMs: number,
): Promise<Spending | null> {
  const { perDay, perMonth } = kb.budget;
  if (!("embedded" in service) || (perDay === undefined && perMonth === undefined)) return null;
  // Only who has a budget waits for the program's other half to load.
  const { maintainStore, storeFile } = await import("./embedded-store.ts");
  const file = storeFile(state);
  if (!existsSync(file)) return null;
  const { day, month } = maintainStore(file).spent(new Date(nowMs).toISOString().slice(0, 10));
  return {
    today: day / NANOS,
    thisMonth: month / NANOS,
    perDay: perDay ?? null,
    perMonth: perMonth ?? null,
  };
}

/** One line, for people. */
export function spendingWords({ today, thisMonth, perDay, perMonth }: Spending): string {
  const words = (spent: number, cap: number | null, period: string): string =>
    cap === null ? `${amount(spent)} ${period}` : `${amount(spent)} of ${amount(cap)} ${period}`;
  return `${words(today, perDay, "today")}, ${words(thisMonth, perMonth, "this month")} (UTC)`;
}

/** Up to four decimals: a day of embedding costs fractions of a cent. */
function amount(sum: number): string {
  return sum.toLocaleString("en", { minimumFractionDigits: 2, maximumFractionDigits: 4 });
}
