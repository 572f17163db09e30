import { openFairLine } from "../../lib/fair-line.ts";
import { LEASE_MS } from "../queue/queue.ts";
import type { QueuedJob } from "../queue/queue.ts";
import type { WaitReservation } from "./job-slots.ts";

/**
 * The order of the waiting jobs that this process knows: the first job of each resource, fair among accounts and owners. The
 * store is authoritative; a change there shows when a job starts. Synchronous.
 */
export interface JobSchedule {
  /** Adds a job that was read from the store. It waits until a known job of its resource has ended. */
  add(job: QueuedJob): void;
  /** Makes jobs available that are due at `nowMs`. */
  ripen(nowMs: number): void;
  /** The next due job of a class whose account is accepted. */
  next(jobClass: JobClass, accept: (accountId: string) => boolean): QueuedJob | undefined;
  /** Removes the job that `next` returns, because it starts. */
  take(jobClass: JobClass, accept: (accountId: string) => boolean): void;
  /** Reports whether more jobs of its resource were read since. */
  hasMore(job: QueuedJob): boolean;
  /** Ends a taken job. `next`: the first remaining job of its resource, if any. */
  end(job: QueuedJob, heldMs: number, next: QueuedJob | undefined): void;
  /**
   * Makes a waiting job due, because another process may have ended its lease: the one of a resource, or those that wait no longer than
   * a lease, `HASTENED_MAX` at most. Returns whether there was any.
   */
  hasten(line: string | undefined, nowMs: number): boolean;
  /** Puts a taken job back that reached a limit on waiting documents; it restarts later. */
  park(job: QueuedJob, heldMs: number, kind: WaitReservation["kind"]): void;
  /** When the next job becomes due that was not due at the last `ripen`; undefined when there is none. */
  dueMs(): number | undefined;
}

/** Jobs that ran during a crash; jobs that reached the limit of a kind of wait and restart; all others. */
export type JobClass = "suspect" | WaitReservation["kind"] | "other";

/** Jobs that are tried at a time for the leases of other processes. Most may wait for other reasons, and are tried in vain. */
const HASTENED_MAX = 100;

/** Opens an empty schedule. */
export function openJobSchedule(): JobSchedule {
  const classes = {
    suspect: openFairLine<QueuedJob>(),
    file: openFairLine<QueuedJob>(),
    text: openFairLine<QueuedJob>(),
    other: openFairLine<QueuedJob>(),
  };
  /** The class that each running job was taken from, by number. */
  const takenFrom = new Map<number, JobClass>();
  /** Resources with a scheduled or running job. True: more jobs of the resource were read. */
  const known = new Map<string, boolean>();
  /** Jobs that were not due at the last `ripen`, by resource. */
  const later = new Map<string, QueuedJob>();

  const path = ({ accountId, ownerId }: QueuedJob): readonly string[] => [accountId, ownerId];
  const push = (job: QueuedJob): void => classes[job.crashes > 0 ? "suspect" : "other"].push(path(job), job);
  const charge = (job: QueuedJob, heldMs: number): void => {
    classes[takenFrom.get(job.number) ?? "other"].charge(path(job), heldMs);
    takenFrom.delete(job.number);
  };
  const ripen = (nowMs: number): void => {
    for (const [key, job] of later) {
      if (job.dueMs > nowMs) continue;
      later.delete(key);
      push(job);
    }
  };
  return {
    add: (job) => {
      if (known.has(job.line)) known.set(job.line, true);
      else {
        known.set(job.line, false);
        later.set(job.line, job);
      }
    },
    ripen,
    next: (jobClass, accept) => classes[jobClass].peek(accept),
    take: (jobClass, accept) => {
      const job = classes[jobClass].shift(accept);
      if (job !== undefined) takenFrom.set(job.number, jobClass);
    },
    hasMore: (job) => known.get(job.line) === true,
    end: (job, heldMs, next) => {
      charge(job, heldMs);
      if (next === undefined) known.delete(job.line);
      else {
        known.set(job.line, false);
        later.set(job.line, next);
      }
    },
    hasten: (line, nowMs) => {
      const found =
        line === undefined
          ? [...later.values()]
              .filter(({ dueMs }) => dueMs > nowMs && dueMs <= nowMs + LEASE_MS)
              .slice(0, HASTENED_MAX)
          : [later.get(line)].filter((job) => job !== undefined);
      for (const job of found) later.set(job.line, { ...job, dueMs: 0 });
      return found.length > 0;
    },
    park: (job, heldMs, kind) => {
      charge(job, heldMs);
      classes[kind].push(path(job), job);
    },
    dueMs: () => {
      const dues = [...later.values()].map(({ dueMs }) => dueMs);
      return dues.length === 0 ? undefined : Math.min(...dues);
    },
  };
}
