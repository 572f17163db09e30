import { existsSync } from "node:fs";
import type { Config } from "../../config/load.ts";
import type { Spending as StoredSpending } from "../../kb/store/spending.ts";
import type { StateFolder } from "./state-folder.ts";

/** The cost of models of other services, and the caps, in the currency of the prices. */
export interface Spending {
  /** In UTC, as the budget counts: calls in progress count with their maximum cost. */
  readonly today: number;
  readonly thisMonth: number;
  /** Null: unlimited. */
  readonly perDay: number | null;
  readonly perMonth: number | null;
}

/** The store counts in billionths. */
const NANOS = 1_000_000_000;

/** Reads what was spent on a day and in its month; undefined: unknown. */
export type ReadSpent = (day: string) => Promise<StoredSpending | undefined>;

/**
 * Reads the spending from the store of the embedded service, whether the service runs or not; `readDatabase` reads it from a
 * database. Null: nothing is capped, there is no store yet, or the database does not answer.
 */
export async function readSpending(
  { service, kb }: Pick<Config, "service" | "kb">,
  state: StateFolder,
  nowMs: number,
  readDatabase: ReadSpent,
): Promise<Spending | null> {
  const { perDay, perMonth } = kb.budget;
  if (!("embedded" in service) || (perDay === undefined && perMonth === undefined)) return null;
  const today = new Date(nowMs).toISOString().slice(0, 10);
  // Loaded only for a configuration with a budget: this is the program's other half.
  const spent = service.database === undefined ? await spentInFile(state, today) : await readDatabase(today);
  if (spent === undefined) return null;
  return {
    today: spent.day / NANOS,
    thisMonth: spent.month / NANOS,
    perDay: perDay ?? null,
    perMonth: perMonth ?? null,
  };
}

async function spentInFile(state: StateFolder, day: string): Promise<StoredSpending | undefined> {
  const { maintainStore, storeFile } = await import("./embedded-store.ts");
  const file = storeFile(state);
  return existsSync(file) ? maintainStore(file).spent(day) : undefined;
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
