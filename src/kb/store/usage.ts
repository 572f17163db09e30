/** The use of an account in an hour. Hours count from 1970-01-01T00:00Z. */
export interface AddedUsage {
  readonly accountId: string;
  readonly hour: number;
  /** Documents at present, which replace an earlier count of the hour. */
  readonly documents: number;
  /** Waiting documents at present; the hour keeps the largest number. */
  readonly queued: number;
  /** Searches by range of their duration (`LATENCY_MS`), which are added to those of the hour. */
  readonly searches: readonly number[];
}

/** The sums of an hour. */
export type HourUsage = Omit<AddedUsage, "accountId">;

export interface UsageQuery {
  readonly accountId: string;
  readonly fromHour: number;
}

/** The cost of models on a day (UTC, `2026-11-24`), in billionths. */
export interface DaySpending {
  readonly day: string;
  readonly nanos: number;
}

/** Use of the service by account and hour. */
export interface UsageRecords {
  addUsage(added: AddedUsage): Promise<void>;
  /** The hours from `fromHour` on, oldest first, after the last one before it, which says how many documents there were. */
  usage(query: UsageQuery): Promise<readonly HourUsage[]>;
  /** Removes up to `limit` hours before `hour`, but not the newest of an account. Returns how many. */
  purgeUsage(hour: number, limit: number): Promise<number>;
  /** The days from `fromDay` on, oldest first; of one account, or of all calls. */
  spendingSince(query: {
    readonly accountId: string | undefined;
    readonly fromDay: string;
  }): Promise<readonly DaySpending[]>;
}
