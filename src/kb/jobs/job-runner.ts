import { openShares } from "../../lib/shares.ts";
import { admit } from "../queue/admission.ts";
import { openLoop, type Loop } from "../queue/loop.ts";
import type { QueuedJob } from "../queue/queue.ts";
import { openJobLine } from "./job-line.ts";
import { NoPlaceToWait, openJobSlots, type JobSlot, type WaitNeed } from "./job-slots.ts";
import { firstJob, runJob } from "./job.ts";
import type { KnowledgeBase } from "../resources/knowledge-base.ts";

/** Bytes of the requests' bodies at once, which are in memory then. A longer one goes alone. */
const BODY_BYTES_MAX = 64 * 1024 * 1024;
/** Jobs read from the store at a time. */
const READ_MAX = 1000;

interface Running {
  readonly job: QueuedJob;
  readonly slot: JobSlot;
}

/**
 * Opens what takes in, in the background, the documents whose requests were answered before; it does nothing before `wake`.
 * Accounts and the owners of each take turns by the time that their documents took. `onProblem` is called with failures
 * that are not a document's own.
 */
export function openJobRunner(kb: KnowledgeBase, onProblem: (error: unknown) => void): Loop {
  const running = new Set<Running>();
  const line = openJobLine();
  const slots = openJobSlots(() => loop.wake());
  const bodies = openShares(BODY_BYTES_MAX);
  /** What parked jobs need, by number. */
  const needs = new Map<number, WaitNeed>();
  /** Number of the last job that was read: later ones have higher numbers. */
  let lastRead = 0;

  const run = async (started: Running, signal: AbortSignal): Promise<void> => {
    const { job, slot } = started;
    const work = async (): Promise<QueuedJob | NoPlaceToWait | undefined> => {
      // A close may have come first.
      if (signal.aborted) return undefined;
      const end = await runJob(kb, job, slot);
      if (end instanceof NoPlaceToWait) return end;
      return end === "again" || line.hasMore(job) ? await firstJob(kb, job.line) : undefined;
    };
    let next: QueuedJob | NoPlaceToWait | undefined = job;
    try {
      next = await kb.turns.run(job.line, work);
    } finally {
      running.delete(started);
      slot.leave();
      bodies.give(job.accountId, job.bodyBytes);
      if (next instanceof NoPlaceToWait) {
        needs.set(job.number, next.need);
        line.park(job, slot.heldMs(), next.need.kind);
      } else {
        needs.delete(job.number);
        line.end(job, slot.heldMs(), next);
      }
      kb.jobCompletions.notify(job.line);
    }
  };
  /** Why a job may not begin: nothing of its account may in this part of the line, nothing of its account, or nothing at all. */
  const begin = (job: QueuedJob): Running | "part" | "account" | "all" => {
    const { accountId, bodyBytes } = job;
    const beside = [...running].filter(({ slot }) => !slot.isWaiting());
    const admission = admit(
      job,
      beside.map((each) => each.job),
    );
    if (admission === "later") return "part";
    if (admission === "next") return "account";
    // Not one behind it in its stead: those that bring much would wait for as long as small ones come.
    if (bodies.held() > 0 && bodies.held() + bodyBytes > BODY_BYTES_MAX) return "all";
    const need = needs.get(job.number);
    const slot = slots.take(accountId, need);
    if (slot === undefined) return need === undefined ? "account" : "part";
    if (!bodies.take(accountId, bodyBytes)) {
      slot.leave();
      return "account";
    }
    const started = { job, slot };
    running.add(started);
    return started;
  };
  const beginAll = (): Running[] => {
    const begun: Running[] = [];
    /** Accounts of which none may begin now. */
    const held = new Set<string>();
    for (const part of ["suspect", "text", "file", "other"] as const) {
      const passed = new Set<string>();
      const accept = (accountId: string): boolean => !held.has(accountId) && !passed.has(accountId);
      for (;;) {
        if (slots.isFull()) return begun;
        const job = line.next(part, accept);
        if (job === undefined) break;
        const outcome = begin(job);
        if (outcome === "all") return begun;
        if (typeof outcome === "object") {
          line.take(part, accept);
          begun.push(outcome);
        } else (outcome === "account" ? held : passed).add(job.accountId);
      }
    }
    return begun;
  };
  const find = async (): Promise<{ jobs: Running[]; nextMs: number }> => {
    const { queue } = kb.store;
    for (;;) {
      const nowMs = kb.steadyMs();
      const read = await queue.after({ queue: "ingest", number: lastRead, limit: READ_MAX, nowMs });
      for (const job of read) line.add(job);
      lastRead = read.at(-1)?.number ?? lastRead;
      if (read.length < READ_MAX) break;
    }
    line.ripen(kb.steadyMs());
    return { jobs: beginAll(), nextMs: (line.dueMs() ?? Infinity) - kb.steadyMs() };
  };
  const loop = openLoop<Running>({ find, run, onProblem });
  return loop;
}
