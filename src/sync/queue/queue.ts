import { type WorkQueueOptions, openWaiter, type Shared, type Line, openLine } from "./lines.ts";
import { openLanes } from "./lanes.ts";
import { openPump } from "./pump.ts";

/**
 * Jobs that wait for their turn. Jobs are small and are stored in lists; only a few at a time are prepared (read into
 * memory) and become tasks, so that a hundred thousand files cost a list. Of several lines with work, the one with the
 * fewest jobs in flight goes next. Jobs pushed as `last` run after all others of their owner.
 */
export interface WorkQueue<Job> {
  push(jobs: Iterable<Job>, options?: { readonly last?: boolean }): void;
  setWidth(width: number): void;
  /** Starts nothing more. Resolves when what was started has ended. */
  stop(): Promise<void>;
}

/**
 * Opens an empty queue. Concurrency comes from lanes, each a task of p-queue that sends one job after another: a task
 * for every file would cost as much as writing it to the ledger.
 */
export function openQueue<Job>(options: WorkQueueOptions<Job>): WorkQueue<Job> {
  const { lineOf } = options;
  const waiter = openWaiter();
  const shared: Shared<Job> = { lines: [], bytes: 0, stopped: false, waiter };
  const lanes = openLanes(options, shared);
  const pump = openPump(options, shared, lanes.open);
  const lineBy = new Map<unknown, Map<string, Line<Job>>>();
  const lineFor = (job: Job, isLast: boolean): Line<Job> => {
    const { owner, kind, isReserved = false } = lineOf(job);
    const ofOwner = lineBy.get(owner) ?? new Map<string, Line<Job>>();
    lineBy.set(owner, ofOwner);
    const name = isLast ? "last" : kind;
    let line = ofOwner.get(name);
    if (line === undefined) {
      line = openLine(owner, isLast, isReserved);
      ofOwner.set(name, line);
      shared.lines.push(line);
    }
    return line;
  };

  return {
    push: (jobs, { last: isLast = false } = {}) => {
      if (shared.stopped) return;
      for (const job of jobs) lineFor(job, isLast).jobs.push(job);
      pump.ensure();
      waiter.wake();
    },
    setWidth: lanes.setWidth,
    stop: async () => {
      shared.stopped = true;
      waiter.wake();
      await pump.ended();
      await waiter.until(() => shared.lines.every(({ preparing }) => preparing === 0));
      lanes.open();
      // Ready jobs that have not started pass through and do nothing.
      await lanes.idle();
    },
  };
}
