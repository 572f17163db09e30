import { openShares } from "../../lib/shares.ts";
import { admit } from "../queue/admission.ts";
import { openLoop, type Loop } from "../queue/loop.ts";
import type { QueuedJob } from "../queue/queue.ts";
import { openJobSchedule } from "./job-schedule.ts";
import { WaitLimitReached, openJobSlots, type JobSlot, type WaitReservation } from "./job-slots.ts";
import { nextJob, runJob } from "./job.ts";
import type { KnowledgeBase } from "../resources/knowledge-base.ts";

/** Most bytes of request bodies in memory at once. A job with a longer body runs alone. */
const BODY_BYTES_MAX = 64 * 1024 * 1024;
/** Jobs read from the store at a time. */
const READ_MAX = 1000;

interface Running {
  readonly job: QueuedJob;
  readonly slot: JobSlot;
}

/** Runs the queued jobs of documents. */
export interface JobRunner extends Loop {
  /** Tries jobs again that another process may have ended: of a resource, or any. */
  hasten(this: void, line?: string): void;
}

/**
 * Opens the runner that ingests, in the background, documents whose requests were already answered. It does nothing before
 * `wake`. Accounts, and the owners of each, take turns by the time that their documents took. `onProblem` reports failures that
 * are not a document's own.
 */
export function openJobRunner(kb: KnowledgeBase, onProblem: (error: unknown) => void): JobRunner {
  const running = new Set<Running>();
  const schedule = openJobSchedule();
  const slots = openJobSlots(() => loop.wake());
  const bodies = openShares(BODY_BYTES_MAX);
  /** The reservations of parked jobs, by number. */
  const reservations = new Map<number, WaitReservation>();
  /** Number of the last job that was read. Later ones have higher numbers. */
  let lastRead = 0;

  const run = async (started: Running, signal: AbortSignal): Promise<void> => {
    const { job, slot } = started;
    const work = async (): Promise<QueuedJob | WaitLimitReached | undefined> => {
      // The runner may have closed in the meantime.
      if (signal.aborted) return undefined;
      const outcome = await runJob(kb, job, slot);
      if (outcome instanceof WaitLimitReached) return outcome;
      return outcome !== "over" || schedule.hasMore(job) ? await nextJob(kb, job, outcome) : undefined;
    };
    let next: QueuedJob | WaitLimitReached | undefined = job;
    try {
      next = await kb.turns.run(job.line, work);
    } finally {
      running.delete(started);
      slot.leave();
      bodies.give(job.accountId, job.bodyBytes);
      if (next instanceof WaitLimitReached) {
        reservations.set(job.number, next.reservation);
        schedule.park(job, slot.heldMs(), next.reservation.kind);
      } else {
        reservations.delete(job.number);
        schedule.end(job, slot.heldMs(), next);
      }
      kb.jobWaits.notify(job.line);
    }
  };
  /** Starts a job, or returns what must wait with it: its account's jobs of this class, all of its account, or all jobs. */
  const start = (job: QueuedJob): Running | "class" | "account" | "all" => {
    const { accountId, bodyBytes } = job;
    const active = [...running].filter(({ slot }) => !slot.isWaiting());
    const admission = admit(
      job,
      active.map((each) => each.job),
    );
    if (admission === "later") return "class";
    if (admission === "next") return "account";
    // No later job overtakes it: otherwise large bodies would wait for as long as small ones arrive.
    if (bodies.held() > 0 && bodies.held() + bodyBytes > BODY_BYTES_MAX) return "all";
    const reservation = reservations.get(job.number);
    const slot = slots.take(accountId, reservation);
    if (slot === undefined) return reservation === undefined ? "account" : "class";
    if (!bodies.take(accountId, bodyBytes)) {
      slot.leave();
      return "account";
    }
    const started = { job, slot };
    running.add(started);
    return started;
  };
  const startAll = (): Running[] => {
    const started: Running[] = [];
    /** Accounts whose jobs may not start now. */
    const blocked = new Set<string>();
    for (const jobClass of ["suspect", "text", "file", "other"] as const) {
      const skipped = new Set<string>();
      const accept = (accountId: string): boolean => !blocked.has(accountId) && !skipped.has(accountId);
      for (;;) {
        if (slots.isFull()) return started;
        const job = schedule.next(jobClass, accept);
        if (job === undefined) break;
        const outcome = start(job);
        if (outcome === "all") return started;
        if (typeof outcome === "object") {
          schedule.take(jobClass, accept);
          started.push(outcome);
        } else (outcome === "account" ? blocked : skipped).add(job.accountId);
      }
    }
    return started;
  };
  const find = async (): Promise<{ jobs: Running[]; nextMs: number }> => {
    const { queue } = kb;
    for (;;) {
      const nowMs = kb.steadyMs();
      const read = await queue.after({ queue: "ingest", number: lastRead, limit: READ_MAX, nowMs });
      for (const job of read) schedule.add(job);
      lastRead = read.at(-1)?.number ?? lastRead;
      if (read.length < READ_MAX) break;
    }
    schedule.ripen(kb.steadyMs());
    return { jobs: startAll(), nextMs: (schedule.dueMs() ?? Infinity) - kb.steadyMs() };
  };
  const loop = openLoop<Running>({ find, run, onProblem });
  const hasten = (line?: string): void => {
    if (schedule.hasten(line, kb.steadyMs())) loop.wake();
  };
  return { ...loop, hasten };
}
