import { openFairLine } from "../../lib/fair-line.ts";
import type { QueuedJob } from "../queue/queue.ts";
import type { WaitNeed } from "./job-slots.ts";

/**
 * The queue of jobs as this process knows it: the first job of each resource, in an order that is fair among accounts and
 * owners. The store has the truth; what changed there meanwhile shows when a job begins. Synchronous.
 */
export interface JobLine {
  /** A job that was read from the store. One of a resource that is known waits until that resource's job has ended. */
  add(job: QueuedJob): void;
  /** Takes note of what is due by then. */
  ripen(nowMs: number): void;
  /** The next job of an accepted account that is due, among those of a part of the line. */
  next(part: LinePart, accept: (accountId: string) => boolean): QueuedJob | undefined;
  /** Takes the job of `next`, which begins. */
  take(part: LinePart, accept: (accountId: string) => boolean): void;
  /** Whether more jobs of its resource were read since. */
  hasMore(job: QueuedJob): boolean;
  /** A job that was taken is over. `next`: the first job of its resource now, if it has one. */
  end(job: QueuedJob, heldMs: number, next: QueuedJob | undefined): void;
  /** A job that was taken found no place to wait, and begins anew. */
  park(job: QueuedJob, heldMs: number, kind: WaitNeed["kind"]): void;
  /** When the next job is due that was not at the last `ripen`; undefined where there is none. */
  dueMs(): number | undefined;
}

/** Jobs that were under way at a crash; those that began and found no place for a wait of that kind; all others. */
export type LinePart = "suspect" | WaitNeed["kind"] | "other";

/** Opens an empty line. */
export function openJobLine(): JobLine {
  const parts = {
    suspect: openFairLine<QueuedJob>(),
    file: openFairLine<QueuedJob>(),
    text: openFairLine<QueuedJob>(),
    other: openFairLine<QueuedJob>(),
  };
  /** The part that each job under way was taken from, by number. */
  const takenFrom = new Map<number, LinePart>();
  /** Resources with a job here or under way; true: more of theirs were read. */
  const known = new Map<string, boolean>();
  const later = new Map<string, QueuedJob>();

  const path = ({ accountId, ownerId }: QueuedJob): readonly string[] => [accountId, ownerId];
  const push = (job: QueuedJob): void => parts[job.crashes > 0 ? "suspect" : "other"].push(path(job), job);
  const charge = (job: QueuedJob, heldMs: number): void => {
    parts[takenFrom.get(job.number) ?? "other"].charge(path(job), heldMs);
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
    next: (part, accept) => parts[part].peek(accept),
    take: (part, accept) => {
      const job = parts[part].shift(accept);
      if (job !== undefined) takenFrom.set(job.number, part);
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
    park: (job, heldMs, kind) => {
      charge(job, heldMs);
      parts[kind].push(path(job), job);
    },
    dueMs: () => {
      const dues = [...later.values()].map(({ dueMs }) => dueMs);
      return dues.length === 0 ? undefined : Math.min(...dues);
    },
  };
}
