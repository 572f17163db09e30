import { groupIntoBatches } from "./batches.ts";
import type { BatchBounds } from "./batches.ts";

/** Runs one batch; resolves to one vector per text, in order. */
export type RunBatch = (texts: readonly string[]) => Promise<readonly Float32Array[]>;

/** `urgent` calls (searches) overtake all queued batches of `background` calls (ingest). */
export type Priority = "urgent" | "background";

/** Queue of a model that runs one batch at a time. */
export interface BatchQueue {
  /** Embeds texts, in their order. Rejects with the signal's reason as soon as it aborts, or with the error of the batch. */
  embed(
    priority: Priority,
    texts: readonly string[],
    signal: AbortSignal | undefined,
  ): Promise<Float32Array[]>;
  /** Rejects all pending and later calls with `reason`. */
  close(reason: Error): void;
}

interface Job {
  readonly texts: readonly string[];
  /** Batches that have not started. */
  readonly batches: (readonly number[])[];
  readonly vectors: Float32Array[];
  missing: number;
  readonly settle: (error?: unknown) => void;
}

/**
 * Creates an empty queue. Runs one batch at a time. Batches are short (see `bounds`), so an urgent call waits for at most one.
 * More batches in flight would gain nothing, because one batch uses all threads of the model.
 */
export function createBatchQueue(run: RunBatch, bounds: BatchBounds): BatchQueue {
  const waiting: Record<Priority, Set<Job>> = { urgent: new Set(), background: new Set() };
  let running = false;
  let closed: Error | undefined;

  const runNext = async (): Promise<void> => {
    if (running) return;
    running = true;
    for (;;) {
      const job = first(waiting.urgent) ?? first(waiting.background);
      const batch = job?.batches.shift();
      if (job === undefined || batch === undefined) break;
      // Round-robin: a short call does not wait for all batches of a long one.
      for (const jobs of [waiting.urgent, waiting.background]) if (jobs.delete(job)) jobs.add(job);
      await runOne(run, job, batch);
    }
    running = false;
  };

  return {
    embed: (priority, texts, signal) =>
      new Promise((resolve, reject) => {
        signal?.throwIfAborted();
        if (closed !== undefined) throw closed;
        if (texts.length === 0) {
          resolve([]);
          return;
        }
        const abort = (): void => job.settle(signal?.reason);
        const job: Job = {
          texts,
          batches: [...groupIntoBatches(texts, bounds)],
          vectors: Array.from<Float32Array>({ length: texts.length }),
          missing: texts.length,
          settle: (error) => {
            waiting[priority].delete(job);
            signal?.removeEventListener("abort", abort);
            if (error === undefined) resolve(job.vectors);
            else reject(error);
          },
        };
        signal?.addEventListener("abort", abort, { once: true });
        waiting[priority].add(job);
        void runNext();
      }),
    close: (reason) => {
      closed = reason;
      for (const job of [...waiting.urgent, ...waiting.background]) job.settle(reason);
    },
  };
}

async function runOne(run: RunBatch, job: Job, batch: readonly number[]): Promise<void> {
  try {
    const vectors = await run(batch.map((index) => job.texts[index] ?? ""));
    for (const [at, index] of batch.entries()) {
      const vector = vectors[at];
      if (vector === undefined) throw new Error(`${vectors.length} vectors for ${batch.length} texts`);
      job.vectors[index] = vector;
    }
    job.missing -= batch.length;
    if (job.missing === 0) job.settle();
  } catch (error) {
    job.settle(error);
  }
}

/** Returns the next job with batches to start. */
function first(jobs: ReadonlySet<Job>): Job | undefined {
  for (const job of jobs) if (job.batches.length > 0) return job;
  return undefined;
}
