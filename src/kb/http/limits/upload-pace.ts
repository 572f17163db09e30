/** Slows the uploads of accounts whose documents are read more slowly than they come. */
export interface UploadPace {
  /** Resolves when the account may upload a file. Rejects with the signal's reason soon after the signal aborts. */
  turn(this: void, account: string, signal: AbortSignal): Promise<void>;
}

/**
 * Waiting documents of an account beyond which its uploads are paced: enough work for all processes until more has come.
 * More than one folder of a daemon has, 200 that wait and those in flight (sync/send/queue/queue.ts): held uploads would take the
 * slots of its other requests.
 */
const WAITING_MAX = 250;
/**
 * Uploads of it meanwhile, at once and in the long run. A file costs the loop some 4 ms, and these would only wait unread:
 * sixteen clients that send as fast as they can took a quarter of the loop (bench/hostile-account.ts).
 */
const BURST = 20;
const PER_SECOND = 10;
/** How old the number of waiting documents may be. */
const COUNT_MS = 250;
/** Accounts whose number is remembered; one more forgets all. */
const COUNTS_MAX = 1000;

/** Opens the pace. `countWaiting` returns how many documents of an account wait to be processed. */
export function openUploadPace(
  countWaiting: (account: string) => Promise<number>,
  nowMs = (): number => performance.now(),
): UploadPace {
  const budget = openAccountBudget({ perSecond: PER_SECOND, burst: BURST });
  const counts = new Map<string, { readonly atMs: number; readonly waiting: Promise<number> }>();
  const isBehind = async (account: string): Promise<boolean> => {
    let count = counts.get(account);
    if (count === undefined || nowMs() - count.atMs >= COUNT_MS) {
      if (counts.size >= COUNTS_MAX) counts.clear();
      count = { atMs: nowMs(), waiting: countWaiting(account) };
      counts.set(account, count);
    }
    return (await count.waiting) > WAITING_MAX;
  };
  return {
    turn: async (account, signal) => {
      let endMs: number | undefined;
      let isOver = false;
      try {
        for (;;) {
          // Asked again after each wait, because the documents may have been read.
          const isHeld = await isBehind(account);
          // The body of a client that disconnected before somebody reads it never ends, and the request would not either.
          signal.throwIfAborted();
          if (!isHeld) return;
          if (endMs === undefined) {
            budget.spend(account, nowMs());
            endMs = nowMs() + budget.waitMs(account, nowMs());
          }
          const leftMs = endMs - nowMs();
          isOver = leftMs <= 0;
          if (isOver) return;
          await sleep(Math.min(leftMs, COUNT_MS));
        }
      } finally {
        // Otherwise these would count against later uploads, which would wait for minutes.
        if (endMs !== undefined && !isOver) budget.refund(account);
      }
    },
  };
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => void setTimeout(resolve, ms).unref());
}

/** The number of items that an account may send. */
interface BudgetRule {
  /** Sustained rate. */
  readonly perSecond: number;
  /** Items that may come at once after a pause. */
  readonly burst: number;
}

/** Counts items, such as invalid lines, by account. */
interface AccountBudget {
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
