import { groupIntoBatches } from "./batches.ts";
import type { BatchBounds } from "./batches.ts";

/** Runs one batch; answers one vector a text, in order. */
export type RunBatch = (texts: readonly string[]) => Promise<readonly Float32Array[]>;

/** `urgent` calls (a person waits for a search) go before every waiting batch of `patient` ones (ingest). */
export type Lane = "urgent" | "patient";

/** Queue in front of a model that runs one batch at a time. */
export interface Lanes {
  /** Vectors in the order of the texts. Rejects with the signal's reason as soon as it fires, or with what `run` threw. */
  embed(lane: Lane, texts: readonly string[], signal: AbortSignal | undefined): Promise<Float32Array[]>;
  /** Rejects every call that is not answered yet, and all later ones. */
  close(reason: Error): void;
}

interface Job {
  readonly texts: readonly string[];
  /** Batches not started yet. */
  readonly batches: (readonly number[])[];
  readonly vectors: Float32Array[];
  missing: number;
  readonly settle: (error?: unknown) => void;
}

/**
 * One batch is in the model at a time: batches are short (the bounds say how short), so an urgent call waits for at
 * most one of them. More in flight would win nothing, the model uses all the threads it may have.
 */
export function createLanes(run: RunBatch, bounds: BatchBounds): Lanes {
  const waiting: Record<Lane, Set<Job>> = { urgent: new Set(), patient: new Set() };
  let running = false;
  let closed: Error | undefined;

  const runNext = async (): Promise<void> => {
    if (running) return;
    running = true;
    for (;;) {
      const job = first(waiting.urgent) ?? first(waiting.patient);
      const batch = job?.batches.shift();
      if (job === undefined || batch === undefined) break;
      // Behind the others: each call gets a batch in turn, so that a short one does not wait for all of a long one.
      for (const jobs of [waiting.urgent, waiting.patient]) if (jobs.delete(job)) jobs.add(job);
      await runOne(run, job, batch);
    }
    running = false;
  };

  return {
    embed: (lane, texts, signal) =>
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
            if (!waiting[lane].delete(job)) return;
            signal?.removeEventListener("abort", abort);
            if (error === undefined) resolve(job.vectors);
            else reject(error);
          },
        };
        signal?.addEventListener("abort", abort, { once: true });
        waiting[lane].add(job);
        void runNext();
      }),
    close: (reason) => {
      closed = reason;
      for (const job of [...waiting.urgent, ...waiting.patient]) job.settle(reason);
    },
  };
}

async function runOne(run: RunBatch, job: Job, batch: readonly number[]): Promise<void> {
  try {
    const vectors = await run(batch.map((index) => job.texts[index] ?? ""));
    for (const [place, index] of batch.entries()) {
      const vector = vectors[place];
      if (vector === undefined) throw new Error(`${vectors.length} vectors for ${batch.length} texts`);
      job.vectors[index] = vector;
    }
    job.missing -= batch.length;
    if (job.missing === 0) job.settle();
  } catch (error) {
    job.settle(error);
  }
}

/** The oldest job that still has batches to start. */
function first(jobs: ReadonlySet<Job>): Job | undefined {
  for (const job of jobs) if (job.batches.length > 0) return job;
  return undefined;
}
