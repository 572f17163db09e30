import assert from "node:assert/strict";
import { openFairLine } from "../../lib/fair-line.ts";
import { openShares } from "../../lib/shares.ts";
import { admit } from "../queue/admission.ts";
import type { Loop } from "../queue/loop.ts";
import { needOf, type LeasedJob, type WaitingJob } from "../queue/queue.ts";
import { openRunner } from "../queue/runner.ts";
import { jobKey } from "../queue/waits.ts";
import { openJobSlots, reservationOf, type JobSlot, type WaitReservation } from "./job-slots.ts";
import { runLeased } from "./job.ts";
import type { KnowledgeBase } from "../resources/knowledge-base.ts";

/** Most bytes of request bodies in memory at once. A job with a longer body runs alone. */
const BODY_BYTES_MAX = 64 * 1024 * 1024;
/** Due jobs of one owner that are read at a time: more than may start, and than a crash leaves to restart one at a time. */
const PER_OWNER = 64;

interface Running {
  readonly job: WaitingJob;
  readonly slot: JobSlot;
}

/** Jobs that ran during a crash; jobs that reached the limit of a kind of wait and restart; all others. */
const CLASSES = ["suspect", "text", "read", "file", "other"] as const;
type JobClass = "suspect" | WaitReservation["kind"] | "other";

/**
 * Opens the runner that ingests, in the background, documents whose requests were already answered. It does nothing before
 * `wake`. Accounts, and the owners of each, take turns by the time that their documents took. `onProblem` reports failures that
 * are not a document's own.
 */
export function openJobRunner(kb: KnowledgeBase, onProblem: (error: unknown) => void): Loop {
  const running = new Map<number, Running>();
  const lines = openDueLines();
  const slots = openJobSlots(() => loop.wake());
  const bodies = openShares(BODY_BYTES_MAX);

  /** Starts a job, or returns what must wait with it: its account's jobs of this class, all of its account, or all jobs. */
  const start = (job: WaitingJob): "started" | "class" | "account" | "all" => {
    const { accountId, bodyBytes } = job;
    const active = [...running.values()].filter(({ slot }) => !slot.isWaiting());
    const admission = admit(
      job,
      active.map((each) => each.job),
    );
    if (admission === "later") return "class";
    if (admission === "next") return "account";
    // No later job overtakes it: otherwise large bodies would wait for as long as small ones arrive.
    if (bodies.held() > 0 && bodies.held() + bodyBytes > BODY_BYTES_MAX) return "all";
    const reservation = reservationOf(needOf(job.line));
    const slot = slots.take(accountId, reservation);
    if (slot === undefined) return reservation === undefined ? "account" : "class";
    if (!bodies.take(accountId, bodyBytes)) {
      slot.leave();
      return "account";
    }
    running.set(job.number, { job, slot });
    return "started";
  };
  const choose = (due: readonly WaitingJob[]): WaitingJob[] => {
    lines.update(due);
    const started: WaitingJob[] = [];
    /** Accounts whose jobs may not start now. */
    const blocked = new Set<string>();
    for (const jobClass of CLASSES) {
      const skipped = new Set<string>();
      const accept = (accountId: string): boolean => !blocked.has(accountId) && !skipped.has(accountId);
      for (;;) {
        if (slots.isFull()) return started;
        const job = lines.next(jobClass, accept);
        if (job === undefined) break;
        const outcome = start(job);
        if (outcome === "all") return started;
        if (outcome === "started") {
          lines.take(jobClass, accept);
          started.push(job);
        } else (outcome === "account" ? blocked : skipped).add(job.accountId);
      }
    }
    return started;
  };
  const work = async (job: LeasedJob): Promise<undefined> => {
    const started = running.get(job.number);
    assert(started !== undefined, "a job runs that was not chosen");
    await runLeased(kb, job, started.job.crashes, started.slot);
  };
  const leave = (job: WaitingJob): void => {
    const slot = running.get(job.number)?.slot;
    if (slot === undefined) return;
    running.delete(job.number);
    slot.leave();
    bodies.give(job.accountId, job.bodyBytes);
    lines.charge(job, slot.heldMs());
    kb.jobWaits.notify(keyOf(job));
  };
  const loop = openRunner({
    queue: kb.queue,
    name: "ingest",
    leases: kb.leases,
    nowMs: kb.steadyMs,
    perLine: PER_OWNER,
    choose,
    work,
    inTurn: (job, run) => kb.turns.run(keyOf(job), run),
    onEnd: leave,
    onProblem,
  });
  return loop;
}

const keyOf = ({ accountId, name }: WaitingJob): string => jobKey({ accountId, id: name });

/** The order of the due jobs that were read last: by class, fair among accounts and owners, of each the newest change first. */
function openDueLines() {
  const openLine = () => openFairLine<WaitingJob>();
  const classes = {
    suspect: openLine(),
    read: openLine(),
    file: openLine(),
    text: openLine(),
    other: openLine(),
  };
  /** The jobs that wait in the lines, by number, and where. */
  const waiting = new Map<number, { readonly job: WaitingJob; readonly jobClass: JobClass }>();
  const pathOf = ({ accountId, ownerId }: WaitingJob): readonly string[] => [accountId, ownerId];
  return {
    /** Replaces the jobs, and keeps what accounts and owners have used. */
    update: (due: readonly WaitingJob[]): void => {
      const found = new Map(due.map((job) => [job.number, { job, jobClass: classOf(job) }]));
      for (const [number, { job, jobClass }] of waiting) {
        const now = found.get(number);
        if (now?.jobClass === jobClass && now.job.changedMs === job.changedMs) continue;
        classes[jobClass].remove(pathOf(job), job);
        waiting.delete(number);
      }
      for (const [number, entry] of found) {
        if (waiting.has(number)) continue;
        waiting.set(number, entry);
        classes[entry.jobClass].push(pathOf(entry.job), entry.job, entry.job.changedMs);
      }
    },
    next: (jobClass: JobClass, accept: (accountId: string) => boolean) => classes[jobClass].peek(accept),
    take: (jobClass: JobClass, accept: (accountId: string) => boolean): void => {
      const job = classes[jobClass].shift(accept);
      if (job !== undefined) waiting.delete(job.number);
    },
    charge: (job: WaitingJob, heldMs: number): void => classes[classOf(job)].charge(pathOf(job), heldMs),
  };
}

function classOf({ crashes, line }: WaitingJob): JobClass {
  return crashes > 0 ? "suspect" : (reservationOf(needOf(line))?.kind ?? "other");
}
