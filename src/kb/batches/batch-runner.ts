import { setTimeout as sleep } from "node:timers/promises";
import { queueUpdate } from "../jobs/change.ts";
import { openLoop, type Loop } from "../queue/loop.ts";
import { nowIso, type KnowledgeBase } from "../resources/knowledge-base.ts";
import { Refusal } from "../resources/refusal.ts";
import { removeResource } from "../resources/remove.ts";
import type { BatchItem, BatchOutcome, OpenBatch } from "../store/batches.ts";

/** Batches worked on at a time, each of another account. */
const WIDTH = 4;
/** Documents of a batch worked on at a time: they share transactions. Each may hold a text in memory. */
const TOGETHER = 8;
/** Groups after which another batch of the account gets its turn. */
const GROUPS = 25;
/** Longest pause of a batch that has to wait, for a slot in the queue for example. */
const PAUSE_SECONDS_MAX = 10;
/** Time until a batch on which another process works is looked at again: that process may have ended. */
const ELSEWHERE_MS = 5000;
/** Characters of a message that are stored. */
const MESSAGE_CHARS = 200;

/**
 * Opens the runner of batches. A crash repeats the documents that were being worked on, which does no harm: a second delete finds
 * nothing, and a second retry leaves alone what is queued. It does nothing before `wake`.
 */
export function openBatchRunner(kb: KnowledgeBase, onProblem: (error: unknown) => void): Loop {
  /** Batches on which other processes work, by number, and the time from which to look at them again. */
  const elsewhere = new Map<number, number>();
  return openLoop<OpenBatch>({
    find: async (running) => {
      const nowMs = performance.now();
      for (const [number, fromMs] of elsewhere) if (fromMs <= nowMs) elsewhere.delete(number);
      const busy = new Set(running.map(({ accountId }) => accountId));
      const jobs: OpenBatch[] = [];
      for (const batch of await kb.records.openBatches()) {
        if (running.length + jobs.length >= WIDTH) break;
        if (busy.has(batch.accountId) || elsewhere.has(batch.number)) continue;
        busy.add(batch.accountId);
        jobs.push(batch);
      }
      return { jobs, nextMs: Math.min(...elsewhere.values()) - nowMs };
    },
    run: async (batch, signal) => {
      const isFree = await kb.sharedTurns.runIfFree(`batch ${batch.number}`, () =>
        runBatch(kb, batch, signal),
      );
      if (!isFree) elsewhere.set(batch.number, performance.now() + ELSEWHERE_MS);
    },
    onProblem,
  });
}

async function runBatch(kb: KnowledgeBase, batch: OpenBatch, signal: AbortSignal): Promise<void> {
  for (let group = 0; group < GROUPS && !signal.aborted; group++) {
    const items = await kb.records.pendingItems({ ...batch, limit: TOGETHER });
    if (items.length === 0) return;
    const results = await Promise.all(items.map((item) => workOn(kb, batch, item)));
    const outcomes = results.filter((result) => typeof result === "object");
    if (outcomes.length > 0) await kb.records.settleItems({ ...batch, outcomes, nowIso: nowIso(kb) });
    const waits = results.filter((result) => typeof result === "number");
    // A signal that aborts ends the pause; the next start continues.
    if (waits.length > 0)
      await sleep(Math.max(...waits) * 1000, undefined, { signal }).catch(() => undefined);
  }
}

/** Returns the outcome of a document, or the seconds after which it can be tried again. */
async function workOn(
  kb: KnowledgeBase,
  { kind, accountId }: OpenBatch,
  { position, resourceId }: BatchItem,
): Promise<BatchOutcome | number> {
  try {
    if (kind === "delete") await removeResource(kb, accountId, resourceId);
    else await retry(kb, accountId, resourceId);
    return { position };
  } catch (error) {
    const { code, message, retryAfterSeconds } = kb.explain(error);
    // Somebody else deleted it.
    if (code === "resource_not_found") return { position };
    if (retryAfterSeconds !== undefined) return Math.min(retryAfterSeconds, PAUSE_SECONDS_MAX);
    return { position, failure: { code, message: message.slice(0, MESSAGE_CHARS).toWellFormed() } };
  }
}

/** Takes a document in again that failed: its address is read again, its text split again. */
async function retry(kb: KnowledgeBase, accountId: string, id: string): Promise<void> {
  const before = await kb.records.resource({ accountId, id });
  if (before?.status !== "error") return;
  if (before.url === null && before.version === 0) {
    throw new Refusal("invalid_request", "The text of the document was not stored: send the document again.");
  }
  const { strategy, chunkSize, chunkOverlap } = before.settings;
  const body =
    before.url === null ? { settings: { strategy, chunkSize, chunkOverlap } } : { url: before.url };
  await queueUpdate(kb, { accountId, id, body, context: {} });
}
