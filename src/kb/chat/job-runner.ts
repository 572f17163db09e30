import { setTimeout as sleep } from "node:timers/promises";
import { codeOf, KbsyncError } from "../../lib/failure.ts";
import { saysFull } from "../../lib/full-disk.ts";
import { openQueueWatch } from "../../lib/queue-watch.ts";
import { ChatBody, type ChatDelivery, type ChatResponse } from "../../wire/chat.ts";
import { admit, isSpent, type Suspect } from "../jobs/job-company.ts";
import { nowIso, type KnowledgeBase } from "../resources/knowledge-base.ts";
import { Refusal } from "../resources/refusal.ts";
import type { ChatJob, ChatJobFigures } from "../store/chat.ts";
import type { Store } from "../store/store.ts";
import type { NewDelivery } from "../store/webhooks.ts";
import type { Chat } from "./chat.ts";
import { openJobOrder } from "./job-order.ts";
import { webhookTarget } from "./webhook-target.ts";

/** Jobs worked on at once; those who wait at the telephone go first. */
const WIDTH = 4;
/** Jobs beyond that, each of an account of which none is worked on: nobody waits for another's slow images. */
const GUESTS_MAX = 2;
/** Jobs read at once: some may have to wait for others of their thread. */
const READ_MAX = 2 * WIDTH;
/** A job for which a process could not be had is begun so often. */
const TRIES_MAX = 3;
/** A job that found the service busy holds its place so long before it is begun again. */
const BUSY_MS = 1_000;
/** First wait of a job that found the disk full, doubled for the next, and the longest. */
const FULL_MS = 60_000;
const FULL_MS_MAX = 10 * 60_000;
/** A question waits so long for room, as long as its message is tried; then it is told as failed. */
const KEPT_MS = 24 * 60 * 60_000;
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
  figures(accountId: string): Promise<QuestionFigures>;
  /** Breaks off what is under way, which is begun anew by the next start. */
  close(): Promise<void>;
}

/** What became of a question whose answer goes to a webhook. */
export type QuestionOutcome = "answered" | "failed";

/** Questions of an account whose answers go to webhooks. */
export interface QuestionFigures extends ChatJobFigures {
  /** Those told as failed since the service started. */
  readonly failed: number;
}

/** What a runner is opened with. */
export interface ChatJobParts {
  readonly kb: KnowledgeBase;
  readonly chat: Pick<Chat, "recall" | "run">;
  /** Notified how each job ended; `code` is that of a failure. */
  readonly onEnded: (job: ChatJob, code: string | undefined) => void;
  /** Notified when questions begin to wait for room on the disk. */
  readonly onFull: (error: unknown) => void;
  /** Notified of failures that are not a request's own. */
  readonly onProblem: (error: unknown) => void;
}

/** A job that found the disk full. Kept in memory alone, for a full disk takes no note; the next start tries it at once. */
interface PutOff {
  readonly tries: number;
  readonly dueMs: number;
  /** Beginnings that could not be taken back in the store, and do not count. */
  readonly spared: number;
}
const NEVER: PutOff = { tries: 0, dueMs: 0, spared: 0 };

/** Opens the runner; it does nothing before `wake`. */
export function openChatJobs({ kb, chat, onEnded, onFull, onProblem }: ChatJobParts): ChatJobRunner {
  const stop = new AbortController();
  const { signal } = stop;
  const running = new Map<number, Suspect & { readonly done: Promise<void> }>();
  /** By number; as many as the queue holds at most. */
  const putOff = new Map<number, PutOff>();
  const order = openJobOrder();
  /** By account; one number for each that had any. */
  const failed = new Map<string, number>();

  const begunBefore = ({ number, begun }: ChatJob): number => begun - (putOff.get(number)?.spared ?? 0);
  const work = async (job: ChatJob): Promise<void> => {
    try {
      if ((await attempt(job)) === "again") return;
      putOff.delete(job.number);
      order.leave(job.number);
    } catch (error) {
      // Whatever could not be written, be it the note that a job is told as failed.
      if (!isFull(error)) throw error;
      const { tries, spared } = putOff.get(job.number) ?? NEVER;
      const delayMs = Math.min(FULL_MS_MAX, FULL_MS * 2 ** tries);
      if (![...putOff.values()].some((each) => each.tries > 0)) onFull(error);
      putOff.set(job.number, { tries: tries + 1, dueMs: kb.steadyMs() + delayMs, spared });
    }
  };
  /** Throws what the store and a full disk throw. */
  const attempt = async (job: ChatJob): Promise<"over" | "again"> => {
    const begun = (await kb.store.beginChatJob(job.number)) - (putOff.get(job.number)?.spared ?? 0);
    // It is gone.
    if (begun <= 0) return "over";
    try {
      if (isSpent(begun))
        throw new Refusal("internal", "The request was begun several times and never ended.");
      const body = ChatBody.parse(JSON.parse(job.body));
      const asking = await chat.recall(job.accountId, job.messageId, body);
      const deliveryOf = (response: ChatResponse): NewDelivery =>
        deliver(kb, job, body, { success: true, response });
      await chat.run({ ...asking, job: { number: job.number, deliveryOf } }, { signal });
    } catch (error) {
      // Broken off by the close, or the service is busy: that is not one of the times that a request took the process with it.
      if (signal.aborted || isBusy(error)) {
        await handBack(job);
        await rest();
        return "again";
      }
      if (isFull(error) && kb.nowMs() - job.createdMs < KEPT_MS) {
        await handBack(job);
        throw error;
      }
      if (begun < TRIES_MAX && codeOf(error) === "extraction_failed") {
        // A process could not be had: that may pass too, but it counts, for it may be the request's own doing.
        await rest();
        return "again";
      }
      await fail(job, error);
      return "over";
    }
    onEnded(job, undefined);
    return "over";
  };
  const handBack = async ({ number }: ChatJob): Promise<void> => {
    try {
      await kb.store.handBackChatJob(number);
    } catch (error) {
      if (!isFull(error)) throw error;
      const known = putOff.get(number) ?? NEVER;
      putOff.set(number, { ...known, spared: known.spared + 1 });
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
    failed.set(job.accountId, (failed.get(job.accountId) ?? 0) + 1);
    onEnded(job, code);
  };
  const start = (job: ChatJob): void => {
    const done = work(job)
      .catch(watch.fail)
      .finally(() => {
        running.delete(job.number);
        watch.wake();
      });
    running.set(job.number, { accountId: job.accountId, begun: begunBefore(job), done });
  };
  /** Ends early with the close. */
  const rest = (): Promise<void> => sleep(BUSY_MS, undefined, { signal, ref: false }).catch(() => undefined);
  const look = async (): Promise<void> => {
    const nowMs = kb.steadyMs();
    const waiting = [...putOff].filter(([, { dueMs }]) => dueMs > nowMs);
    /** Those that have to wait for one beside which they may not be begun. */
    const apart: number[] = [];
    /** Accounts that have a job which waits for the end of all others of theirs. */
    const held = new Set<string>();
    const isTaken = (): boolean => running.size >= WIDTH;
    const runs = (accountId: string): boolean =>
      [...running.values()].some((each) => each.accountId === accountId);
    for (;;) {
      // Each of them is begun or has to wait for another, so that the next read tells of others.
      const except = [...waiting.map(([number]) => number), ...running.keys(), ...order.behind(), ...apart];
      const busy = isTaken() ? [...running.values()].map(({ accountId }) => accountId) : [];
      const found = await kb.store.chatJobs(READ_MAX, except, busy);
      let passedOver = false;
      for (const job of found) {
        const { accountId } = job;
        if (signal.aborted || running.size >= WIDTH + GUESTS_MAX) return;
        if (isTaken() && runs(accountId)) {
          passedOver = true;
          continue;
        }
        if (!order.take(job)) continue;
        const admission = held.has(accountId)
          ? "next"
          : admit({ accountId, begun: begunBefore(job) }, [...running.values()]);
        if (admission === "next") held.add(accountId);
        if (admission === "now") start(job);
        else apart.push(job.number);
      }
      if (found.length < READ_MAX && !passedOver) break;
    }
    const nextMs = Math.min(...waiting.map(([, { dueMs }]) => dueMs));
    // While jobs are under way, the end of each looks again.
    if (waiting.length > 0 && running.size === 0) watch.sleep(nextMs - nowMs);
  };
  const watch = openQueueWatch({ look, onProblem });

  return {
    wake: watch.wake,
    figures: async (accountId) => ({
      ...(await kb.store.chatJobFigures(accountId)),
      failed: failed.get(accountId) ?? 0,
    }),
    close: async () => {
      stop.abort();
      await watch.close();
      await Promise.all([...running.values()].map(({ done }) => done));
    },
  };
}

/**
 * No room for what was to be written. SQLite also says so by a file that it cannot make or make longer, which is no fault of
 * the question either.
 */
function isFull(error: unknown): boolean {
  return saysFull(error) || codeOf(error) === "store_unreachable";
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

/** The same store; `wake` is notified of every request put in. */
export function noticeChatJobs(store: Store, wake: () => void): Store {
  return {
    ...store,
    addChatJob: async (job, jobsMax, alongside) => {
      await store.addChatJob(job, jobsMax, alongside);
      wake();
    },
  };
}
