import { openQueueWatch } from "../../lib/queue-watch.ts";
import type { DueJob } from "../store/jobs.ts";
import type { Store } from "../store/store.ts";
import { admit } from "./job-company.ts";
import { jobKey } from "./job-ends.ts";
import { ASIDE_MAX, openJobPlaces } from "./job-places.ts";
import { handBackJobs, runFirstJob } from "./job.ts";
import type { KnowledgeBase } from "./knowledge-base.ts";

/**
 * Documents taken in at once, beside those in the recogniser. What is heavy about it has bounds of its own, and more in flight
 * share their transactions; but each may hold a text of 32 MB.
 */
const WIDTH = 32;
/** Bytes of the requests' bodies at once, which are in memory then. A longer one goes alone. */
const BODY_BYTES_MAX = 64 * 1024 * 1024;
/** Most jobs read at once: those under way, as many that have to wait for one of them, and as many behind those. */
const READ_MAX = 3 * (WIDTH + ASIDE_MAX);

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
  const running = new Map<string, { readonly due: DueJob; readonly work: Promise<void> }>();
  const places = openJobPlaces(() => watch.wake());
  const kbOfJobs: KnowledgeBase = { ...kb, whileWaiting: places.whileWaiting };
  let bodyBytes = 0;
  let closed = false;

  const start = (due: DueJob): void => {
    const { accountId, id } = due;
    const key = jobKey(due);
    bodyBytes += due.bodyBytes;
    const work = kb.turns
      .run(key, async () => {
        // A close or another change of the resource may have come first.
        if (closed) return;
        await runFirstJob(kbOfJobs, { accountId, id });
      })
      .catch(watch.fail)
      .finally(() => {
        running.delete(key);
        bodyBytes -= due.bodyBytes;
        kb.jobEnds.tell(key);
        watch.wake();
      });
    running.set(key, { due, work });
  };
  /** Begins what may be begun among the first so many that are due. False: one behind them may be as well. */
  const begin = async (limit: number): Promise<boolean> => {
    const due = await kb.store.dueJobs(kb.nowMs(), limit);
    const lent = places.lent();
    /** Accounts that have a job which waits for the end of all others of theirs. */
    const waiting = new Set<string>();
    for (const job of due) {
      if (closed || running.size >= WIDTH + lent) return true;
      if (running.has(jobKey(job))) continue;
      if (waiting.has(job.accountId)) continue;
      const admission = admit(
        job,
        [...running.values()].map((each) => each.due),
      );
      if (admission === "next") waiting.add(job.accountId);
      if (admission !== "now") continue;
      // Not one behind it in its stead: those that bring much would wait for as long as small ones come.
      if (running.size > 0 && bodyBytes + job.bodyBytes > BODY_BYTES_MAX) return true;
      start(job);
    }
    return due.length < limit;
  };
  const look = async (): Promise<void> => {
    // Those under way stand in the queue still, before all others; mostly none behind them has to wait for another.
    if (!(await begin(running.size + 2 * WIDTH))) await begin(READ_MAX);
    if (closed) return;
    const nextMs = await kb.store.nextJobMs();
    // While jobs are under way, the end of each looks again.
    if (nextMs !== undefined && running.size === 0) watch.sleep(nextMs - kb.nowMs());
  };
  const watch = openQueueWatch({ look, onProblem });

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
