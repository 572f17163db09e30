import type { DueJob } from "../store/jobs.ts";
import type { Store } from "../store/store.ts";
import { runFirstJob } from "./job.ts";
import type { KnowledgeBase } from "./knowledge-base.ts";

/** Documents taken in at once. What is heavy about it has bounds of its own; more in flight share their transactions. */
const WIDTH = 8;
/** Longest sleep until the queue is looked at again: a clock that was set back must not hold up what is due. */
const SLEEP_MS_MAX = 60_000;
/** Wait after a failure of the store itself, which no job is to blame for. */
const STORE_RETRY_MS = 5_000;

/** Takes in, in the background, the documents whose requests were answered before. */
export interface JobRunner {
  /** Looks for work; to be called at the start, and whenever a job was put in. */
  wake(this: void): void;
  underWay(): number;
  /** Begins no more, and waits for what is under way, but not for long: what is left is begun anew by the next start. */
  close(timeoutMs: number): Promise<void>;
}

/** Opens the runner; it does nothing before `wake`. `onProblem` hears of failures that are not a document's own. */
export function openJobRunner(kb: KnowledgeBase, onProblem: (error: unknown) => void): JobRunner {
  const running = new Map<string, Promise<void>>();
  const begun = new Map<string, DueJob>();
  let looking: Promise<void> | undefined;
  let again = false;
  let closed = false;
  let isResting = false;
  let timer: NodeJS.Timeout | undefined;

  const start = (due: DueJob): void => {
    const { accountId, id } = due;
    const key = `${accountId}/${id}`;
    const work = kb.turns
      .run(key, async () => {
        // A close or another change of the resource may have come first.
        if (closed) return;
        begun.set(key, due);
        await runFirstJob(kb, { accountId, id });
      })
      .catch(fail)
      .finally(() => {
        running.delete(key);
        begun.delete(key);
        wake();
      });
    running.set(key, work);
  };
  /** A failure of the store: everything waits, so that no job is begun again in a tight loop. */
  const fail = (error: unknown): void => {
    if (closed) return;
    onProblem(error);
    isResting = true;
    clearTimeout(timer);
    timer = setTimeout(() => {
      isResting = false;
      wake();
    }, STORE_RETRY_MS).unref();
  };

  const look = async (): Promise<void> => {
    // Those under way stand in the queue still, before all others.
    const due = await kb.store.dueJobs(kb.nowMs(), WIDTH * 2);
    for (const job of due) {
      if (closed || running.size >= WIDTH) return;
      if (!running.has(`${job.accountId}/${job.id}`)) start(job);
    }
    const nextMs = await kb.store.nextJobMs();
    // While jobs are under way, the end of each looks again.
    if (nextMs !== undefined && running.size === 0) sleep(nextMs - kb.nowMs());
  };
  const handBack = async ({ accountId, id }: DueJob): Promise<void> => {
    const job = await kb.store.jobOf({ accountId, id });
    if (job !== undefined) await kb.store.postponeJob(job.number, kb.nowMs());
  };
  const sleep = (ms: number): void => {
    if (isResting) return;
    clearTimeout(timer);
    timer = setTimeout(wake, Math.min(SLEEP_MS_MAX, Math.max(1, ms))).unref();
  };
  const wake = (): void => {
    if (closed || isResting) return;
    again = looking !== undefined;
    looking ??= look()
      .catch(fail)
      .finally(() => {
        looking = undefined;
        if (again) wake();
      });
  };

  return {
    wake,
    underWay: () => running.size,
    close: async (timeoutMs) => {
      closed = true;
      clearTimeout(timer);
      const patience = Promise.withResolvers<void>();
      const limit = setTimeout(patience.resolve, timeoutMs);
      await Promise.race([Promise.all([looking, ...running.values()]), patience.promise]);
      clearTimeout(limit);
      // Broken off by us: that is not one of the times that a document took the process with it.
      await Promise.all([...begun.values()].map(handBack)).catch(onProblem);
    },
  };
}

/** The same store; `wake` hears of every job put in. */
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
