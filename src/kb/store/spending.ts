/** The kinds of calls that cost money. */
export type Spender = "embedding" | "chat";

/** Sums of a day and of its month, in billionths. */
export interface Spending {
  readonly day: number;
  readonly month: number;
}

/** The cost of models of other services, by day (UTC, `2026-11-24`), of all accounts and of each. A call may be of no account. */
export interface SpendingRecords {
  /** Adds a sum, if neither limit would be exceeded by it; null: no limit. Returns the sums after it. */
  spend(spending: {
    /** Default: the call is of no account. */
    readonly accountId?: string | undefined;
    readonly spender: Spender;
    readonly day: string;
    readonly nanos: number;
    readonly dayMax: number | null;
    readonly monthMax: number | null;
  }): Promise<Spending & { readonly isGranted: boolean }>;
  /** Changes the sum of a day. */
  settleSpending(change: {
    /** Default: the call is of no account. */
    readonly accountId?: string | undefined;
    readonly spender: Spender;
    readonly day: string;
    readonly nanos: number;
  }): Promise<void>;
  spent(day: string): Promise<Spending>;
}
