import { openQueueWatch } from "../../lib/queue-watch.ts";
import { openShares } from "../../lib/shares.ts";
import type { QueuedJob } from "../store/jobs.ts";
import type { Store } from "../store/store.ts";
import { admit } from "../queue/admission.ts";
import { jobKey } from "../queue/completions.ts";
import { openJobLine } from "./job-line.ts";
import { NoPlaceToWait, openJobSlots, type JobSlot, type WaitNeed } from "./job-slots.ts";
import { handBackJobs, runFirstJob } from "./job.ts";
import type { KnowledgeBase } from "../resources/knowledge-base.ts";

/** Bytes of the requests' bodies at once, which are in memory then. A longer one goes alone. */
const BODY_BYTES_MAX = 64 * 1024 * 1024;
/** Jobs read from the store at a time. */
const READ_MAX = 1000;

/** Takes in, in the background, the documents whose requests were answered before. */
export interface JobRunner {
  /** Looks for work; to be called at the start, and whenever a job was put in. */
  wake(this: void): void;
  underWay(): number;
  /** Begins no more, and waits for what is under way, but not for long: what is left is begun anew by the next start. */
  close(timeoutMs: number): Promise<void>;
}

interface Running {
  readonly job: QueuedJob;
  readonly slot: JobSlot;
  readonly work: Promise<void>;
}

/**
 * Opens the runner; it does nothing before `wake`. Accounts and the owners of each take turns by the time that their documents
 * took. `onProblem` is called with failures that are not a document's own.
 */
export function openJobRunner(kb: KnowledgeBase, onProblem: (error: unknown) => void): JobRunner {
  const running = new Map<string, Running>();
  const line = openJobLine();
  const slots = openJobSlots(() => watch.wake());
  const bodies = openShares(BODY_BYTES_MAX);
  /** What parked jobs need, by number. */
  const needs = new Map<number, WaitNeed>();
  /** Number of the last job that was read: later ones have higher numbers. */
  let lastRead = 0;
  let closed = false;

  const start = (job: QueuedJob, slot: JobSlot): void => {
    const { accountId, id } = job;
    const key = jobKey(job);
    const run = async (): Promise<QueuedJob | NoPlaceToWait | undefined> => {
      // A close may have come first.
      if (closed) return undefined;
      const end = await runFirstJob(kb, { accountId, id }, slot.whileWaiting);
      if (end instanceof NoPlaceToWait) return end;
      return end === "postponed" || line.hasMore(job)
        ? await kb.store.queuedJob({ accountId, id })
        : undefined;
    };
    const finish = async (): Promise<void> => {
      let next: QueuedJob | NoPlaceToWait | undefined = job;
      try {
        next = await kb.turns.run(key, run);
      } catch (error) {
        watch.fail(error);
      }
      running.delete(key);
      slot.leave();
      bodies.give(accountId, job.bodyBytes);
      if (next instanceof NoPlaceToWait) {
        needs.set(job.number, next.need);
        line.park(job, slot.heldMs(), next.need.kind);
      } else {
        needs.delete(job.number);
        line.end(job, slot.heldMs(), next);
      }
      kb.jobCompletions.notify(key);
      watch.wake();
    };
    const work = finish();
    running.set(key, { job, slot, work });
  };
  /** Why a job may not begin: nothing of its account may in this part of the line, nothing of its account, or nothing at all. */
  const begin = (job: QueuedJob): "begun" | "part" | "account" | "all" => {
    const { accountId, bodyBytes } = job;
    const beside = [...running.values()].filter(({ slot }) => !slot.isWaiting());
    const suspect = ({ accountId: of, begun }: QueuedJob) => ({ accountId: of, crashes: begun });
    const admission = admit(
      suspect(job),
      beside.map((each) => suspect(each.job)),
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
    start(job, slot);
    return "begun";
  };
  const beginAll = (): void => {
    /** Accounts of which none may begin now. */
    const held = new Set<string>();
    for (const part of ["suspect", "text", "file", "other"] as const) {
      const passed = new Set<string>();
      const accept = (accountId: string): boolean => !held.has(accountId) && !passed.has(accountId);
      for (;;) {
        if (closed || slots.isFull()) return;
        const job = line.next(part, accept);
        if (job === undefined) break;
        const outcome = begin(job);
        if (outcome === "all") return;
        if (outcome === "begun") line.take(part, accept);
        else (outcome === "account" ? held : passed).add(job.accountId);
      }
    }
  };
  const look = async (): Promise<void> => {
    for (;;) {
      const read = await kb.store.queuedJobs(lastRead, READ_MAX);
      for (const job of read) line.add(job);
      lastRead = read.at(-1)?.number ?? lastRead;
      if (read.length < READ_MAX) break;
    }
    line.ripen(kb.steadyMs());
    beginAll();
    const dueMs = line.dueMs();
    // The end of each job looks again as well.
    if (dueMs !== undefined && !closed) watch.sleep(dueMs - kb.steadyMs());
  };
  const watch = openQueueWatch({ check: look, onProblem });

  return {
    wake: watch.wake,
    underWay: () => running.size,
    close: async (timeoutMs) => {
      closed = true;
      const looked = watch.close();
      const works = [...running.values()].map(({ work }) => work);
      const patience = Promise.withResolvers<void>();
      const limit = setTimeout(patience.resolve, timeoutMs);
      await Promise.race([Promise.all([looked, ...works]), patience.promise]);
      clearTimeout(limit);
      await handBackJobs(kb).catch(onProblem);
    },
  };
}

/** The same store; `wake` is notified of every job put in. */
export function noticeJobs(store: Store, wake: () => void): Store {
  return {
    ...store,
    enqueueCreate: async (resource, job, alongside) => {
      const queued = await store.enqueueCreate(resource, job, alongside);
      wake();
      return queued;
    },
    enqueueUpdate: async (at, job, alongside) => {
      const queued = await store.enqueueUpdate(at, job, alongside);
      wake();
      return queued;
    },
  };
}
