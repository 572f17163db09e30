/** The number of items that an account may send. */
export interface BudgetRule {
  /** Sustained rate. */
  readonly perSecond: number;
  /** Items that may come at once after a pause. */
  readonly burst: number;
}

/** Counts items, such as invalid lines, by account. */
export interface AccountBudget {
  /** Counts one item. */
  spend(account: string, nowMs: number): void;
  /** Takes back one item that was counted. */
  refund(account: string): void;
  /** Time until the account is within its budget again; 0 if it is. */
  waitMs(account: string, nowMs: number): number;
}

/** Number of accounts above which those with an empty bucket are removed. */
const ACCOUNTS_MAX = 1000;

/** Opens a budget: a leaky bucket per account, stored as the time at which it is empty (GCRA, ITU-T I.371). */
export function openAccountBudget({ perSecond, burst }: BudgetRule): AccountBudget {
  const oneMs = 1000 / perSecond;
  const emptyMs = new Map<string, number>();
  const removeEmpty = (nowMs: number): void => {
    for (const [account, atMs] of emptyMs) if (atMs <= nowMs) emptyMs.delete(account);
  };
  return {
    spend: (account, nowMs) => {
      if (emptyMs.size >= ACCOUNTS_MAX && !emptyMs.has(account)) removeEmpty(nowMs);
      emptyMs.set(account, Math.max(emptyMs.get(account) ?? nowMs, nowMs) + oneMs);
    },
    refund: (account) => {
      const atMs = emptyMs.get(account);
      if (atMs !== undefined) emptyMs.set(account, atMs - oneMs);
    },
    waitMs: (account, nowMs) => Math.max(0, (emptyMs.get(account) ?? nowMs) - nowMs - burst * oneMs),
  };
}
