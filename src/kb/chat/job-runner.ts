import { setTimeout as sleep } from "node:timers/promises";
import { codeOf, KbsyncError } from "../../lib/failure.ts";
import { saysFull } from "../../lib/full-disk.ts";
import { ChatBody, type ChatDelivery, type ChatResponse } from "../../wire/chat.ts";
import { admit, isExhausted } from "../queue/admission.ts";
import type { LeasedJob, QueueFigures, WaitingJob } from "../queue/queue.ts";
import { inTurns, openRunner } from "../queue/runner.ts";
import { nowIso, type KnowledgeBase } from "../resources/knowledge-base.ts";
import { Refusal } from "../resources/refusal.ts";
import type { NewDelivery } from "../store/webhooks.ts";
import type { Chat } from "./chat.ts";
import { webhookTarget } from "./webhook-target.ts";

/** Jobs worked on at once; those who wait at the telephone go first. */
const WIDTH = 4;
/** Jobs beyond that, each of an account of which none is worked on: nobody waits for another's slow images. */
const GUESTS_MAX = 2;
/** Runs of a job for which a process could not be started. */
const TRIES_MAX = 3;
/** A job that found the service busy keeps its slot so long before it may start again. */
const BUSY_MS = 1_000;
/** First wait of a job that found the disk full, doubled for the next, and the longest. */
const FULL_MS = 60_000;
const FULL_MS_MAX = 10 * 60_000;
/** A question waits so long for room, as long as its message is tried; then it fails. */
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
  /** Aborts what runs; the next start works on it again. */
  close(): Promise<void>;
}

/** What became of a question whose answer goes to a webhook. */
export type QuestionOutcome = "answered" | "failed";

/** Questions of an account whose answers go to webhooks. */
export interface QuestionFigures extends QueueFigures {
  /** Those that failed since the service started. */
  readonly failed: number;
}

/** What a runner is opened with. */
export interface ChatJobParts {
  readonly kb: KnowledgeBase;
  readonly chat: Pick<Chat, "recall" | "run">;
  /** Is notified of the end of each job; `code` is that of a failure. */
  readonly onEnded: (messageId: string, code: string | undefined) => void;
  /** Is notified when questions start to wait for room on the disk. */
  readonly onFull: (error: unknown) => void;
  /** Is notified of failures that are not a request's own. */
  readonly onProblem: (error: unknown) => void;
}

/** Opens the runner; it does nothing before `wake`. */
export function openChatJobs({ kb, chat, onEnded, onFull, onProblem }: ChatJobParts): ChatJobRunner {
  const { queue } = kb.store;
  /** How often each job found the disk full. */
  const foundFull = new Map<number, number>();
  /** By account; one number for each that had any. */
  const failed = new Map<string, number>();

  /** A full disk takes no note that a job waits, so it waits in memory. */
  const work = async (job: LeasedJob, signal: AbortSignal): Promise<number | undefined> => {
    try {
      await attempt(job, signal);
      foundFull.delete(job.number);
      return undefined;
    } catch (error) {
      if (!isFull(error)) throw error;
      if (foundFull.size === 0) onFull(error);
      const times = foundFull.get(job.number) ?? 0;
      foundFull.set(job.number, times + 1);
      return Math.min(FULL_MS_MAX, FULL_MS * 2 ** times);
    }
  };
  /** Throws what the store and a full disk throw. */
  const attempt = async (job: LeasedJob, signal: AbortSignal): Promise<void> => {
    try {
      if (isExhausted(job.crashes))
        throw new Refusal("internal", "The request was started several times and never ended.");
      const body = ChatBody.parse(JSON.parse(job.body));
      const asking = await chat.recall(job.accountId, job.name, body);
      const deliveryOf = (response: ChatResponse): NewDelivery =>
        deliver(kb, job, body, { success: true, response });
      await chat.run({ ...asking, job: { lease: job, deliveryOf } }, { signal });
    } catch (error) {
      // A stop says nothing about the request; the service ends the lease.
      if (signal.aborted) return;
      const isNoProcess = codeOf(error) === "extraction_failed" && job.attempts + 1 < TRIES_MAX;
      if (isBusy(error) || isNoProcess) {
        // That a process could not be started may be the request's own doing, so it counts.
        await queue.postpone(job, { dueMs: 0, nowMs: kb.steadyMs(), counts: isNoProcess });
        await sleep(BUSY_MS, undefined, { signal, ref: false }).catch(() => undefined);
        return;
      }
      if (isFull(error) && kb.nowMs() - job.createdMs < KEPT_MS) throw error;
      await fail(job, error);
      return;
    }
    onEnded(job.name, undefined);
  };
  /** Delivers the failure in place of an answer, and ends the job with it. */
  const fail = async (job: LeasedJob, error: unknown): Promise<void> => {
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
      messageId: job.name,
      turn: undefined,
      files: [],
      images: [],
      nowIso: nowIso(kb),
      job,
      delivery: deliver(kb, job, body, { success: false, error: told }),
    });
    failed.set(job.accountId, (failed.get(job.accountId) ?? 0) + 1);
    onEnded(job.name, code);
  };
  const runner = openRunner({
    store: kb.store,
    queue: "chat",
    leases: kb.leases,
    nowMs: kb.steadyMs,
    perLine: 1,
    choose,
    work,
    onProblem,
  });

  return {
    wake: runner.wake,
    figures: async (accountId) => ({
      ...(await queue.figures("chat", accountId)),
      failed: failed.get(accountId) ?? 0,
    }),
    close: () => runner.close(),
  };
}

/** Chooses the questions that start: accounts take turns. Pure. */
function choose(due: readonly WaitingJob[], running: readonly WaitingJob[]): readonly WaitingJob[] {
  const beside = [...running];
  const chosen: WaitingJob[] = [];
  /** Accounts that have a job which waits for the end of all others of theirs. */
  const held = new Set<string>();
  for (const job of inTurns(due, running, ({ accountId }) => accountId)) {
    const { accountId } = job;
    const runs = beside.some((each) => each.accountId === accountId);
    if (beside.length >= WIDTH && (runs || beside.length >= WIDTH + GUESTS_MAX)) continue;
    const admission = held.has(accountId) ? "next" : admit(job, beside);
    if (admission === "next") held.add(accountId);
    if (admission !== "now") continue;
    beside.push(job);
    chosen.push(job);
  }
  return chosen;
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
  job: LeasedJob,
  body: ChatBody,
  outcome: Pick<ChatDelivery, "success" | "response" | "error">,
): NewDelivery {
  // It was checked when the request came; the dial asks again.
  const target = webhookTarget(body, () => true);
  if (target === undefined) throw new Error("a request without a webhook was kept for one");
  const delivery: ChatDelivery = { ...outcome, message_id: job.name, variables: body.variables ?? {} };
  return {
    accountId: job.accountId,
    eventId: `msg_${job.name}`,
    type: "chat.completion",
    body: JSON.stringify(delivery),
    to: { target },
    nowMs: kb.nowMs(),
  };
}
