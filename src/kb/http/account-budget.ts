/** How much an account may send of something. */
export interface BudgetRule {
  /** In the long run. */
  readonly perSecond: number;
  /** At once, after a rest. */
  readonly burst: number;
}

/** What an account sends, such as unreadable lines, counted by account. Synchronous; time comes in with the calls. */
export interface AccountBudget {
  /** Counts one. */
  spend(account: string, nowMs: number): void;
  /** Time until the account is within its budget again; 0 if it is. */
  waitMs(account: string, nowMs: number): number;
}

/** Accounts over which settled ones are forgotten. */
const ACCOUNTS_MAX = 1000;

/** Opens a budget: a leaky bucket for each account, held as the time at which it is empty (GCRA, ITU-T I.371). */
export function openAccountBudget({ perSecond, burst }: BudgetRule): AccountBudget {
  const oneMs = 1000 / perSecond;
  const emptyMs = new Map<string, number>();
  const forgetSettled = (nowMs: number): void => {
    for (const [account, atMs] of emptyMs) if (atMs <= nowMs) emptyMs.delete(account);
  };
  return {
    spend: (account, nowMs) => {
      if (emptyMs.size >= ACCOUNTS_MAX && !emptyMs.has(account)) forgetSettled(nowMs);
      emptyMs.set(account, Math.max(emptyMs.get(account) ?? nowMs, nowMs) + oneMs);
    },
    waitMs: (account, nowMs) => Math.max(0, (emptyMs.get(account) ?? nowMs) - nowMs - burst * oneMs),
  };
}
