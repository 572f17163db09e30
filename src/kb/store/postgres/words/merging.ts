import { setTimeout as sleep } from "node:timers/promises";
import { KbsyncError } from "../../../../lib/failure.ts";
import type { Database } from "../database/database.ts";
import { mergeScope, scopesToMerge, scopesToPurge } from "./merges.ts";
import type { PartsOf } from "./word-parts.ts";

/** Pause between rounds of merges, unless the last one found as many as it may. */
const PAUSE_MS = 3000;
/**
 * Pause between scans of all scopes, which find those that other processes left: a process looks for the ones that its own writes made
 * due without a scan.
 */
const SCAN_MS = 60_000;
/** Scopes of one round. */
const SCOPES_MAX = 100;
/** Merges of a scope in one round, so that one to which much is written does not hold up the others. */
const PASSES_MAX = 8;
/** How long a scope waits whose merge failed, for example because a part of it is damaged. Others are merged meanwhile. */
const FAILED_MS = 10 * 60_000;
/** How long it waits if the same merge may succeed later, for example because a lock was not released in time. */
const RETRY_MS = 15_000;
/** Failed scopes that are left out. With more of them, something other than their parts is wrong. */
const FAILED_MAX = 1000;
/** How often a purge tries again while another process merges the scope, and for how long: the largest merges take minutes. */
const BUSY_PAUSE_MS = 100;
const BUSY_MAX_MS = 5 * 60_000;

type MergedDatabase = Pick<Database, "run" | "problem" | "due">;

/** Merges of the index of words, which every process of a database makes as they become due. */
export interface Merging {
  /** Begins no further merge, and waits for the one that runs. */
  close(): Promise<void>;
}

export function openMerging(database: MergedDatabase): Merging {
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
 * Returns a function that makes one round of merges, and reports whether another round is worth it at once: processes share
 * the work, and the size of a round must not bound what they merge together.
 */
export function makeMerge(
  database: MergedDatabase,
  signal: AbortSignal,
  nowMs: () => number = () => performance.now(),
): () => Promise<boolean> {
  /** When each failed scope is tried again. */
  const failed = new Map<number, number>();
  let scansFromMs = -Infinity;
  const find = async (): Promise<PartsOf[]> => {
    for (const [scope, atMs] of failed) {
      if (atMs > nowMs()) continue;
      failed.delete(scope);
      database.due.add(scope);
    }
    const isScan = nowMs() >= scansFromMs;
    const due = [...database.due];
    if (!isScan && due.length === 0) return [];
    database.due.clear();
    const nextScanMs = isScan ? nowMs() + SCAN_MS : scansFromMs;
    // The next round scans if this one fails, or finds as many scopes as it may.
    scansFromMs = -Infinity;
    const except = [...failed.keys()];
    const scopes = await database.run("snapshot", "", (tx) =>
      scopesToMerge(tx, SCOPES_MAX, except, isScan ? undefined : due),
    );
    if (scopes.length < SCOPES_MAX) scansFromMs = nextScanMs;
    return scopes;
  };
  return async () => {
    const scopes = await find();
    let merged = 0;
    for (const of of scopes) {
      try {
        let passes = 0;
        for (; passes < PASSES_MAX && !signal.aborted; passes += 1) {
          const outcome = await database.run("write", of.accountId, (tx) => mergeScope(tx, of));
          if (outcome !== "merged") break;
          merged += 1;
        }
        if (passes === PASSES_MAX) database.due.add(of.scope);
      } catch (error) {
        if (database.problem() !== undefined || failed.size >= FAILED_MAX) throw error;
        const mayRetry = error instanceof KbsyncError && error.retryable;
        failed.set(of.scope, nowMs() + (mayRetry ? RETRY_MS : FAILED_MS));
      }
    }
    return merged > 0 && scopes.length === SCOPES_MAX;
  };
}

/**
 * Merges parts of an account's scopes until the index has nothing left of chunks that were removed before. Throws `store_busy` if another
 * process merges one of them for too long, and when `signal` aborts; a repetition goes on.
 *
 * All scopes: after a purge that failed, a repetition of the erasure no longer knows the scopes of its documents.
 */
export async function purgeRemoved(
  database: Pick<Database, "run">,
  accountId: string,
  signal: AbortSignal,
): Promise<void> {
  const scopes = await database.run("snapshot", accountId, (tx) => scopesToPurge(tx, accountId));
  for (const of of scopes) await purgeScope(database, of, signal);
}

async function purgeScope(
  database: Pick<Database, "run">,
  of: PartsOf & { readonly last: number },
  signal: AbortSignal,
): Promise<void> {
  for (let waitedMs = 0; waitedMs < BUSY_MAX_MS && !signal.aborted;) {
    // Each try is a transaction of its own: a wait in one would hold a connection, and PostgreSQL ends long waits for locks.
    const outcome = await database.run("write", of.accountId, (tx) => mergeScope(tx, of, of.last));
    if (outcome === "none") return;
    if (outcome === "merged") continue;
    await sleep(BUSY_PAUSE_MS, undefined, { signal }).catch(() => undefined);
    waitedMs += BUSY_PAUSE_MS;
  }
  throw new KbsyncError(
    signal.aborted
      ? "the service stops before the search index is free of removed text"
      : "the search index is being rewritten, so removed text is still in it",
    { code: "store_busy", retryable: true, hint: "Repeat the request: it completes the rest." },
  );
}
