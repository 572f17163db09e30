import { setTimeout as sleep } from "node:timers/promises";
import { codeOf, KbsyncError } from "../../lib/failure.ts";
import { openQueueWatch } from "../../lib/queue-watch.ts";
import { ChatBody, type ChatDelivery, type ChatResponse } from "../../wire/chat.ts";
import { nowIso, type KnowledgeBase } from "../resources/knowledge-base.ts";
import { Refusal } from "../resources/refusal.ts";
import type { ChatJob } from "../store/chat.ts";
import type { Store } from "../store/store.ts";
import type { NewDelivery } from "../store/webhooks.ts";
import type { Chat } from "./chat.ts";
import { webhookTarget } from "./webhook-target.ts";

/** Jobs worked on at once; those who wait at the telephone go first. */
const WIDTH = 4;
/** A job that has begun so often and never ended ends the process each time: it is told as failed. */
const BEGUN_MAX = 3;
/** A job that found the service busy holds its place so long before it is begun again. */
const BUSY_MS = 1_000;
/** What a person would be told to come back for; a job comes back by itself. */
const BUSY_CODES: ReadonlySet<string> = new Set([
  "overloaded",
  "ingest_busy",
  "extractor_busy",
  "store_busy",
]);

/** Answers the requests whose answers go to a webhook. */
export interface ChatJobRunner {
  /** Looks for work; to be called at the start, and whenever a job was put in. */
  wake(this: void): void;
  /** Breaks off what is under way, which is begun anew by the next start. */
  close(): Promise<void>;
}

/** Opens the runner; it does nothing before `wake`. `onProblem` hears of failures that are not a request's own. */
export function openChatJobs(
  kb: KnowledgeBase,
  chat: Chat,
  onProblem: (error: unknown) => void,
): ChatJobRunner {
  const stop = new AbortController();
  const { signal } = stop;
  const running = new Map<number, Promise<void>>();

  const work = async (job: ChatJob): Promise<void> => {
    const begun = await kb.store.beginChatJob(job.number);
    if (begun === 0) return;
    try {
      if (begun > BEGUN_MAX)
        throw new Refusal("internal", "The request was begun several times and never ended.");
      const body = ChatBody.parse(JSON.parse(job.body));
      const asking = await chat.recall(job.accountId, job.messageId, body);
      const deliveryOf = (response: ChatResponse): NewDelivery =>
        deliver(kb, job, body, { success: true, response });
      await chat.run({ ...asking, job: { number: job.number, deliveryOf } }, { signal });
    } catch (error) {
      // Broken off by the close, or the service is busy: that is not one of the times that a request took the process with it.
      if (signal.aborted || isBusy(error)) {
        await kb.store.handBackChatJob(job.number);
        await rest();
      } else if (begun < BEGUN_MAX && codeOf(error) === "extraction_failed") {
        // A process could not be had: that may pass too, but it counts, for it may be the request's own doing.
        await rest();
      } else await fail(job, error);
    }
  };
  /** Delivers the failure in place of an answer, and ends the job with it. */
  const fail = async (job: ChatJob, error: unknown): Promise<void> => {
    const { code, message, hint, field } = kb.explain(error);
    const told = {
      code,
      message,
      ...(hint === undefined ? {} : { hint }),
      ...(field === undefined ? {} : { field }),
    };
    const body = ChatBody.parse(JSON.parse(job.body));
    await kb.store.addTurn({
      accountId: job.accountId,
      agentId: body.agent_id,
      isStoredAgent: false,
      threadId: undefined,
      messageId: job.messageId,
      turn: undefined,
      files: [],
      images: [],
      nowIso: nowIso(kb),
      job: job.number,
      delivery: deliver(kb, job, body, { success: false, error: told }),
    });
  };
  const start = (job: ChatJob): void => {
    const done = work(job)
      .catch(watch.fail)
      .finally(() => {
        running.delete(job.number);
        watch.wake();
      });
    running.set(job.number, done);
  };
  /** Ends early with the close. */
  const rest = (): Promise<void> => sleep(BUSY_MS, undefined, { signal, ref: false }).catch(() => undefined);
  const look = async (): Promise<void> => {
    for (const job of await kb.store.chatJobs(WIDTH * 2)) {
      if (signal.aborted || running.size >= WIDTH) return;
      if (!running.has(job.number)) start(job);
    }
  };
  const watch = openQueueWatch({ look, onProblem });

  return {
    wake: watch.wake,
    close: async () => {
      stop.abort();
      await watch.close();
      await Promise.all(running.values());
    },
  };
}

/** Refused for what others do at the moment, not for what it is. */
function isBusy(error: unknown): boolean {
  return error instanceof KbsyncError && BUSY_CODES.has(error.code);
}

/** The message that tells of an answer. Its `webhook-id` is the same however often it is made. */
function deliver(
  kb: KnowledgeBase,
  job: ChatJob,
  body: ChatBody,
  outcome: Pick<ChatDelivery, "success" | "response" | "error">,
): NewDelivery {
  // It was checked when the request came; the dial asks again.
  const target = webhookTarget(body, () => true);
  if (target === undefined) throw new Error("a request without a webhook was kept for one");
  const delivery: ChatDelivery = { ...outcome, message_id: job.messageId, variables: body.variables ?? {} };
  return {
    accountId: job.accountId,
    eventId: `msg_${job.messageId}`,
    type: "chat.completion",
    body: JSON.stringify(delivery),
    to: { target },
    nowMs: kb.nowMs(),
  };
}

/** The same store; `wake` hears of every request put in. */
export function noticeChatJobs(store: Store, wake: () => void): Store {
  return {
    ...store,
    addChatJob: async (job, jobsMax) => {
      await store.addChatJob(job, jobsMax);
      wake();
    },
  };
}
