import { openQueueWatch } from "../../lib/queue-watch.ts";
import {
  LEASE_MS,
  type Lease,
  type LeasedJob,
  type Queue,
  type QueueName,
  type WaitingJob,
} from "./queue.ts";

/** Works on the jobs of one queue of the store. */
export interface Runner {
  /** Looks for work; to be called at the start, and whenever a job was put. */
  wake(this: void): void;
  running(): number;
  /**
   * Starts no more, aborts what runs, and waits for that. Jobs that were not done keep their leases, which `release` ends.
   */
  close(): Promise<void>;
}

export interface RunnerParts {
  readonly store: { readonly queue: Queue };
  readonly queue: QueueName;
  /** Names this process among those that work on the store. */
  readonly worker: string;
  /** A clock that is never set back. */
  readonly nowMs: () => number;
  /** Jobs of one line that `due` gives at once. */
  readonly perLine: number;
  /** Chooses those of the due jobs that start now, beside the running ones. Pure. */
  readonly choose: (due: readonly WaitingJob[], running: readonly WaitingJob[]) => readonly WaitingJob[];
  /**
   * Works on a job, and ends or postpones it. A number: not even that could be written; the job keeps its lease and is
   * worked on again after so many milliseconds.
   */
  readonly work: (job: LeasedJob, signal: AbortSignal) => Promise<number | undefined>;
  /** Is notified of failures that are not a job's own. After one the queue rests. */
  readonly onProblem: (error: unknown) => void;
}

/** Opens a runner; it does nothing before `wake`. */
export function openRunner(parts: RunnerParts): Runner {
  const { queue, worker, nowMs, choose, work } = parts;
  const jobs = parts.store.queue;
  const stop = new AbortController();
  const { signal } = stop;
  const running = new Map<number, { readonly job: WaitingJob; readonly done: Promise<void> }>();
  /** Jobs that wait in memory, with when they are due. */
  const parked = new Map<number, { readonly job: WaitingJob; readonly dueMs: number }>();
  const leases = new Map<number, Lease>();

  const run = async ({ number }: WaitingJob): Promise<void> => {
    parked.delete(number);
    const leased = await jobs.lease({ number, worker, nowMs: nowMs() });
    if (leased === undefined) return;
    leases.set(number, leased);
    const againInMs = await work(leased, signal);
    if (againInMs === undefined) leases.delete(number);
    else park(leased, againInMs);
  };
  const park = (job: WaitingJob, ms: number): void => {
    parked.set(job.number, { job, dueMs: nowMs() + ms });
  };
  const start = (job: WaitingJob): void => {
    const done = run(job)
      .catch((error: unknown) => {
        // The store failed: the queue rests, and the job comes first afterwards.
        park(job, 0);
        watch.fail(error);
      })
      .finally(() => {
        running.delete(job.number);
        watch.wake();
      });
    running.set(job.number, { job, done });
  };
  const look = async (): Promise<void> => {
    const due = await jobs.due({ queue, nowMs: nowMs(), perLine: parts.perLine });
    if (signal.aborted) return;
    const ripe = [...parked.values()].filter(({ dueMs }) => dueMs <= nowMs());
    const free = due.filter(({ number }) => !running.has(number) && !parked.has(number));
    const found = [...ripe.map(({ job }) => job), ...free];
    for (const job of choose(
      found,
      [...running.values()].map((each) => each.job),
    ))
      start(job);
    const parkedMs = [...parked.values()].map(({ dueMs }) => dueMs).filter((dueMs) => dueMs > nowMs());
    const nextMs = Math.min((await jobs.nextDueMs(queue, nowMs())) ?? Infinity, ...parkedMs);
    if (nextMs < Infinity && !signal.aborted) watch.sleep(nextMs - nowMs());
  };
  const watch = openQueueWatch({ check: look, onProblem: parts.onProblem });
  const keepLeases = async (): Promise<void> => {
    const held = [...leases.values()];
    const [working, waiting] = [
      held.filter((each) => running.has(each.number)),
      held.filter((each) => parked.has(each.number)),
    ];
    for (const [of, isWorking] of [
      [working, true],
      [waiting, false],
    ] as const)
      if (of.length > 0) await jobs.renew({ worker, leases: of, isWorking, nowMs: nowMs() });
  };
  const timer = setInterval(() => void keepLeases().catch(parts.onProblem), LEASE_MS / 3).unref();

  return {
    wake: watch.wake,
    running: () => running.size,
    close: async () => {
      stop.abort();
      clearInterval(timer);
      await watch.close();
      await Promise.all([...running.values()].map(({ done }) => done));
    },
  };
}

/** Orders jobs so that keys take turns: those with fewer jobs running go first, then by number. Pure. */
export function inTurns<T extends WaitingJob>(
  due: readonly T[],
  running: readonly WaitingJob[],
  keyOf: (job: WaitingJob) => string,
): readonly T[] {
  const turns = new Map<string, number>();
  const take = (job: WaitingJob): number => {
    const turn = turns.get(keyOf(job)) ?? 0;
    turns.set(keyOf(job), turn + 1);
    return turn;
  };
  for (const job of running) take(job);
  return due
    .map((job) => ({ job, turn: take(job) }))
    .toSorted((a, b) => a.turn - b.turn)
    .map(({ job }) => job);
}
