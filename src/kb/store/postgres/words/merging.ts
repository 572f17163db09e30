import type { Database } from "../database/database.ts";
import { mergeScope, scopesToMerge } from "./merges.ts";

/** Pause between looks for scopes whose merge is due. Each costs a scan of the scopes, which are few. */
const PAUSE_MS = 3000;
/** Scopes that one look finds. */
const SCOPES_MAX = 100;

/** Merges of the index of words, which every process of a database makes as they become due. */
export interface Merging {
  /** Begins no further merge, and waits for the one that runs. */
  close(): Promise<void>;
}

export function openMerging(database: Pick<Database, "run">): Merging {
  const stop = new AbortController();
  let running = Promise.resolve();
  const mergeAll = async (): Promise<void> => {
    const scopes = await database.run("snapshot", "", (tx) => scopesToMerge(tx, SCOPES_MAX));
    for (const of of scopes) {
      for (let isDue = true; isDue && !stop.signal.aborted;)
        isDue = await database.run("write", of.accountId, (tx) => mergeScope(tx, of));
    }
  };
  const timer = setInterval(() => {
    // A merge that fails is tried again: the index is sound without it, and the store reports a database that does not answer.
    running = running.then(() => (stop.signal.aborted ? undefined : mergeAll())).catch(() => undefined);
  }, PAUSE_MS);
  timer.unref();
  return {
    async close() {
      stop.abort();
      clearInterval(timer);
      await running;
    },
  };
}
