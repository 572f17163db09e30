import { dropReady, type Line, openLines, type Shared, type WorkQueueOptions } from "./lines.ts";
import { RECENT_MAX } from "./order.ts";
import { openPreparing } from "./preparing.ts";
import { openSending } from "./sending.ts";

/**
 * Jobs that wait for their turn. Jobs are small and are stored in lists; only a few at a time are prepared (read into
 * memory) and become tasks of p-queue, so that a hundred thousand files cost a list.
 */
export interface WorkQueue<Job> {
  /** Adds jobs. What is not `recent` is backlog, whose small files go first. */
  push(jobs: readonly Job[], options?: { readonly recent?: boolean }): void;
  /** Drops those prepared jobs that are not in flight and for which `test` is true, and returns them. */
  withdraw(test: (job: Job) => boolean): readonly Job[];
  setWidth(width: number): void;
  /** Starts nothing more. Resolves when what was started has ended. */
  stop(): Promise<void>;
}

/** Opens an empty queue. */
export function openQueue<Job>(options: WorkQueueOptions<Job>): WorkQueue<Job> {
  const { lineOf, bytesOf } = options;
  const lines = openLines<Job>();
  const shared: Shared<Job> = { lines: lines.all, width: options.width, bytes: 0, isStopped: false };
  const preparing = openPreparing(options, shared, () => proceed());
  const sending = openSending(options, shared, () => proceed());
  const proceed = (): void => {
    sending.begin();
    preparing.begin();
  };
  let arrived = 0;
  const add = (job: Job, isRecent: boolean): Line<Job> => {
    const { owner, kind } = lineOf(job);
    const line = lines.of(owner, kind, isRecent);
    line.jobs.push({ job, seq: (arrived += 1) });
    return line;
  };

  return {
    push: (jobs, { recent = false } = {}) => {
      if (shared.isStopped) return;
      const isRecent = recent && jobs.length <= RECENT_MAX;
      const ordered = isRecent ? jobs : jobs.toSorted((a, b) => bytesOf(a) - bytesOf(b));
      const touched = new Set(ordered.map((job) => add(job, isRecent)));
      for (const line of isRecent ? touched : [])
        while (line.jobs.length() > RECENT_MAX) {
          const oldest = line.jobs.shift();
          if (oldest !== undefined) add(oldest.job, false);
        }
      preparing.begin();
    },
    withdraw: (test) => {
      const dropped = dropReady(shared, test);
      if (dropped.length > 0) preparing.begin();
      return dropped;
    },
    setWidth: (width) => {
      shared.width = width;
      sending.setConcurrency();
    },
    stop: async () => {
      shared.isStopped = true;
      await preparing.ended();
      dropReady(shared, () => true);
      await sending.idle();
    },
  };
}
