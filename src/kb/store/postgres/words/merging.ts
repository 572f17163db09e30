import { setTimeout as sleep } from "node:timers/promises";
import type { Database } from "../database/database.ts";
import { mergeScope, scopesToMerge, scopesToPurge } from "./merges.ts";

/** Pause between looks for scopes whose merge is due, unless the last one found as many as it may. Each scans the scopes. */
const PAUSE_MS = 3000;
/** Scopes that one look finds. */
const SCOPES_MAX = 100;
/** How long a scope waits whose merge failed, for example because a part of it is damaged. Others are merged meanwhile. */
const FAILED_MS = 10 * 60_000;
/** Failed scopes that are left out. With more of them, something other than their parts is wrong. */
const FAILED_MAX = 1000;

/** Merges of the index of words, which every process of a database makes as they become due. */
export interface Merging {
  /** Begins no further merge, and waits for the one that runs. */
  close(): Promise<void>;
}

export function openMerging(database: Pick<Database, "run" | "problem">): Merging {
  const stop = new AbortController();
  const { signal } = stop;
  const merge = makeMerge(database, signal);
  const run = async (): Promise<void> => {
    for (let isMore = false; !signal.aborted;) {
      if (!isMore) await sleep(PAUSE_MS, undefined, { ref: false, signal }).catch(() => undefined);
      // A merge that fails is tried again: the index is sound without it, and the store reports a database that does not answer.
      isMore = !signal.aborted && (await merge().catch(() => false));
    }
  };
  const running = run();
  return {
    async close() {
      stop.abort();
      await running;
    },
  };
}

/**
 * Returns a function that makes the merges which one look finds, and reports whether another look is worth it at once: processes share
 * the work, and what one look finds must not bound what they merge together.
 */
export function makeMerge(
  database: Pick<Database, "run" | "problem">,
  signal: AbortSignal,
  nowMs: () => number = () => performance.now(),
): () => Promise<boolean> {
  /** When each failed scope is tried again, the earliest first. */
  const failed = new Map<number, number>();
  return async () => {
    for (const [scope, atMs] of failed) if (atMs <= nowMs()) failed.delete(scope);
    const except = [...failed.keys()];
    const scopes = await database.run("snapshot", "", (tx) => scopesToMerge(tx, SCOPES_MAX, except));
    let merged = 0;
    for (const of of scopes) {
      try {
        while (!signal.aborted && (await database.run("write", of.accountId, (tx) => mergeScope(tx, of))))
          merged += 1;
      } catch (error) {
        if (database.problem() !== undefined || failed.size >= FAILED_MAX) throw error;
        failed.set(of.scope, nowMs() + FAILED_MS);
      }
    }
    return merged > 0 && scopes.length === SCOPES_MAX;
  };
}

/** Merges parts of an account's scopes until the index has nothing left of chunks that were removed before. */
export async function purgeRemoved(database: Pick<Database, "run">, accountId: string): Promise<void> {
  const scopes = await database.run("snapshot", accountId, (tx) => scopesToPurge(tx, accountId));
  for (const of of scopes)
    while (await database.run("write", accountId, (tx) => mergeScope(tx, of, of.last)));
}
