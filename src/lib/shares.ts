/**
 * A bounded amount of something that several accounts take from at the same time. No account can take all of it: each may
 * hold at most three times what is left free, so that one alone gets three quarters, and whoever comes next finds some
 * (dynamic thresholds, Choudhury and Hahne, IEEE/ACM Transactions on Networking 6(2), 1998).
 */
export interface Shares {
  /** Takes an amount; false where it may not, and nothing is taken. An account that holds nothing gets whatever is left. */
  take(account: string, amount: number): boolean;
  /** Takes an amount however much is held: for what cannot be refused any more. */
  force(account: string, amount: number): void;
  /** Gives an amount back that was taken. */
  give(account: string, amount: number): void;
  held(): number;
}

/** How many times what is left free one account may hold. */
const TIMES_FREE = 3;

/** Whether an account that holds `own` of the `held` so far may take an amount more. Pure. */
export function fitsShare(max: number, held: number, own: number, amount: number): boolean {
  const free = max - held - amount;
  return held === 0 || (free >= 0 && (own === 0 || own + amount <= TIMES_FREE * free));
}

/** Opens a total of `max`. One taker alone may take any amount: it could never pass otherwise, and its own limits bound it. */
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
