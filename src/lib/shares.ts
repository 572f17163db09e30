/**
 * A bounded amount that accounts share. No account can take all of it: each may hold at most three times what is left
 * free, so a single account gets three quarters and the next one finds some (dynamic thresholds, Choudhury and Hahne,
 * IEEE/ACM Transactions on Networking 6(2), 1998).
 */
export interface Shares {
  /** Takes an amount, or takes nothing and returns false. An account that holds nothing may take all that is left. */
  take(account: string, amount: number): boolean;
  /** Takes an amount beyond any limit, for work that can no longer be refused. */
  force(account: string, amount: number): void;
  /** Returns an amount. */
  give(account: string, amount: number): void;
  held(): number;
}

/** Factor of the free amount that one account may hold. */
const TIMES_FREE = 3;

/** Whether an account that holds `own` of the `held` total may take another amount. Pure. */
export function fitsShare(max: number, held: number, own: number, amount: number): boolean {
  const free = max - held - amount;
  return held === 0 || (free >= 0 && (own === 0 || own + amount <= TIMES_FREE * free));
}

/** Opens shares of `max`. If nothing is held, any amount may be taken: it could never fit otherwise, and callers limit it. */
export function openShares(max: number): Shares {
  const heldBy = new Map<string, number>();
  let held = 0;
  const force = (account: string, amount: number): void => {
    held += amount;
    const own = (heldBy.get(account) ?? 0) + amount;
    if (own === 0) heldBy.delete(account);
    else heldBy.set(account, own);
  };
  return {
    take: (account, amount) => {
      const fits = fitsShare(max, held, heldBy.get(account) ?? 0, amount);
      if (fits) force(account, amount);
      return fits;
    },
    force,
    give: (account, amount) => force(account, -amount),
    held: () => held,
  };
}
