import { setTimeout as sleep } from "node:timers/promises";
import type { Claims } from "./claims.ts";

/** Duration of a claim that is not renewed: how long others wait for a process that crashed. Renewed three times in this time. */
const CLAIM_MS = 15_000;
/** First pause before a name that another process holds is tried again, doubled each time, and the longest. */
const POLL_MS = 25;
const POLL_MS_MAX = 500;
/** Names in one statement. */
const BATCH_MAX = 500;

/** How long work waits for its turn. */
export interface TurnWait {
  readonly waitMs: number;
  /** Makes the error of work that waited too long. */
  readonly busy: () => Error;
  /** Ends the wait. */
  readonly signal?: AbortSignal;
}

/**
 * Serialises work under the same name among the processes of a store. The caller serialises the work of its own process. A process that
 * was stopped for longer than a claim lasts may work at the same time as another one: the transaction of a write decides.
 */
export interface SharedTurns {
  run<T>(name: string, wait: TurnWait, work: () => Promise<T>): Promise<T>;
  /** Runs work, unless another process works under the name; reports whether it ran. */
  runIfFree(name: string, work: () => Promise<void>): Promise<boolean>;
  /** Removes up to `limit` claims of processes that crashed. Returns how many. */
  sweep(limit: number): Promise<number>;
  /** Ends the claims of this process. Call it when no work is running. */
  close(): Promise<void>;
}

/** Opens the turns of a process. `claims` undefined: no other process uses the store, so no work waits. */
export function openSharedTurns(
  claims: Claims | undefined,
  holder: string,
  onProblem: (error: unknown) => void,
): SharedTurns {
  if (claims === undefined) return ALONE;
  const held = new Set<string>();
  const batches = openBatches(claims, holder, onProblem);
  const renewal = setInterval(() => {
    const names = [...held];
    // A claim that was lost is found by the transaction of the work.
    if (names.length > 0) claims.take(names, holder, CLAIM_MS).catch(onProblem);
  }, CLAIM_MS / 3).unref();

  const take = async (name: string, { waitMs, busy, signal }: TurnWait): Promise<void> => {
    const endMs = performance.now() + waitMs;
    for (let pauseMs = POLL_MS; ; pauseMs = Math.min(POLL_MS_MAX, 2 * pauseMs)) {
      if (await batches.take(name)) return;
      if (performance.now() + pauseMs > endMs) throw busy();
      // At random, so that those who wait for one name do not always ask at the same time.
      await sleep(pauseMs * (0.5 + Math.random() / 2), undefined, { signal });
    }
  };
  const hold = async <T>(name: string, work: () => Promise<T>): Promise<T> => {
    held.add(name);
    try {
      return await work();
    } finally {
      held.delete(name);
      batches.release(name);
    }
  };
  return {
    run: async (name, wait, work) => {
      await take(name, wait);
      return hold(name, work);
    },
    runIfFree: async (name, work) => {
      const isFree = await batches.take(name);
      if (isFree) await hold(name, work);
      return isFree;
    },
    sweep: (limit) => claims.sweep(limit),
    close: async () => {
      clearInterval(renewal);
      await batches.close();
    },
  };
}

/** The turns of the only process of a store. */
const ALONE: SharedTurns = {
  run: (_name, _wait, work) => work(),
  runIfFree: async (_name, work) => {
    await work();
    return true;
  },
  sweep: async () => 0,
  close: async () => undefined,
};

/** Claims and releases names, as many as wait in one statement, one statement after another. */
function openBatches(
  claims: Claims,
  holder: string,
  onProblem: (error: unknown) => void,
): { take(name: string): Promise<boolean>; release(name: string): void; close(): Promise<void> } {
  const wanted = new Map<string, PromiseWithResolvers<boolean>>();
  const left = new Set<string>();
  let working: Promise<void> | undefined;

  const releaseSome = async (): Promise<void> => {
    const names = [...left].slice(0, BATCH_MAX);
    if (names.length === 0) return;
    for (const name of names) left.delete(name);
    // One that stays ends by time.
    await claims.release(names, holder).catch(onProblem);
  };
  const takeSome = async (): Promise<void> => {
    const some = [...wanted].slice(0, BATCH_MAX);
    if (some.length === 0) return;
    for (const [name] of some) wanted.delete(name);
    try {
      const names = new Set(
        await claims.take(
          some.map(([name]) => name),
          holder,
          CLAIM_MS,
        ),
      );
      for (const [name, { resolve }] of some) resolve(names.has(name));
    } catch (error) {
      for (const [, { reject }] of some) reject(error);
    }
  };
  const work = async (): Promise<void> => {
    while (wanted.size > 0 || left.size > 0) {
      await releaseSome();
      await takeSome();
    }
    working = undefined;
  };
  return {
    take: (name) => {
      left.delete(name);
      const waiting = Promise.withResolvers<boolean>();
      wanted.set(name, waiting);
      working ??= work();
      return waiting.promise;
    },
    release: (name) => {
      left.add(name);
      working ??= work();
    },
    close: async () => {
      await working;
    },
  };
}
