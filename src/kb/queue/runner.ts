import type { Leases } from "./leases.ts";
import { openLoop, type Loop } from "./loop.ts";
import { type LeasedJob, LOCKED_MS, type Queue, type QueueName, type WaitingJob } from "./queue.ts";

/** The dependencies of a runner for one queue. */
export interface RunnerParts {
  readonly queue: Queue;
  readonly name: QueueName;
  readonly leases: Leases;
  /** A clock that is never set back. */
  readonly nowMs: () => number;
  /** Most jobs of one line that `due` returns at once. */
  readonly perLine: number;
  /** Chooses the due jobs that start now, given the running ones. */
  readonly choose: (due: readonly WaitingJob[], running: readonly WaitingJob[]) => readonly WaitingJob[];
  /**
   * Works on a job, and ends or postpones it. A number: neither could be written; the job keeps its lease and runs again
   * after this many milliseconds.
   */
  readonly work: (job: LeasedJob, signal: AbortSignal) => Promise<number | undefined>;
  /** Runs a chosen job when its turn has come. Default: at once. */
  readonly inTurn?: (job: WaitingJob, run: () => Promise<void>) => Promise<void>;
  /** Called when a chosen job has ended, also without a lease. */
  readonly onEnd?: (job: WaitingJob) => void;
  /** Reports failures that are not a job's own. The queue pauses after one. */
  readonly onProblem: (error: unknown) => void;
}

/** Opens a runner. It does nothing before `wake`. */
export function openRunner(given: RunnerParts): Loop {
  const { queue, name, leases, nowMs, choose, work, inTurn = (_, run) => run(), ...parts } = given;
  /** Jobs that wait in memory, and when they are due. */
  const parked = new Map<number, { readonly job: WaitingJob; readonly dueMs: number }>();
  const park = (job: WaitingJob, ms: number): void => {
    parked.set(job.number, { job, dueMs: nowMs() + ms });
  };
  const locked = openLockedJobs(nowMs);
  const runOne = async (job: WaitingJob, signal: AbortSignal): Promise<void> => {
    // The runner may have closed before the turn.
    if (signal.aborted) return;
    try {
      const leased = await leases.take(job.number);
      if (leased === undefined) {
        locked.add(job.number);
        return;
      }
      const againInMs = await work(leased, signal);
      if (againInMs === undefined) leases.drop(job.number);
      else {
        leases.note(job.number, false);
        park(leased, againInMs);
      }
    } catch (error) {
      // The store failed. The job runs first once the store works again.
      leases.note(job.number, false);
      park(job, 0);
      throw error;
    }
  };
  return openLoop<WaitingJob>({
    find: async (running) => {
      const found = await queue.due({ queue: name, nowMs: nowMs(), perLine: parts.perLine });
      const numbers = new Set(running.map(({ number }) => number));
      const ready = [...parked.values()].filter(({ dueMs }) => dueMs <= nowMs());
      const free = locked.unlocked(found).filter(({ number }) => !numbers.has(number) && !parked.has(number));
      const jobs = choose([...ready.map(({ job }) => job), ...free], running);
      const parkedMs = [...parked.values()].map(({ dueMs }) => dueMs).filter((dueMs) => dueMs > nowMs());
      const nextDueMs = (await queue.nextDueMs(name, nowMs())) ?? Infinity;
      const nextMs = Math.min(nextDueMs, ...parkedMs, ...locked.times());
      return { jobs, nextMs: nextMs - nowMs() };
    },
    run: async (job, signal) => {
      parked.delete(job.number);
      await inTurn(job, () => runOne(job, signal)).finally(() => parts.onEnd?.(job));
    },
    onProblem: parts.onProblem,
  });
}
/** Due jobs that could not be leased, for example because another transaction had locked them. They are tried again after a pause. */
function openLockedJobs(nowMs: () => number): {
  add(number: number): void;
  /** Returns the due jobs that may be tried. */
  unlocked(due: readonly WaitingJob[]): readonly WaitingJob[];
  /** When the jobs are tried again. */
  times(): Iterable<number>;
} {
  const againMs = new Map<number, number>();
  return {
    add: (number) => void againMs.set(number, nowMs() + LOCKED_MS),
    unlocked: (due) => {
      const numbers = new Set(due.map(({ number }) => number));
      for (const [number, atMs] of againMs)
        if (atMs <= nowMs() || !numbers.has(number)) againMs.delete(number);
      return due.filter(({ number }) => !againMs.has(number));
    },
    times: () => againMs.values(),
  };
}

/** Orders jobs so that keys take turns: keys with fewer running jobs go first, then by number. Pure. */
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
