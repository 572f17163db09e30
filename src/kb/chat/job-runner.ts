import { setTimeout as sleep } from "node:timers/promises";
import { codeOf, KbsyncError } from "../../lib/failure.ts";
import { saysFull } from "../../lib/full-disk.ts";
import { ChatBody, type ChatDelivery, type ChatResponse } from "../../wire/chat.ts";
import { admit, isExhausted } from "../queue/admission.ts";
import type { LeasedJob, QueueFigures, WaitingJob } from "../queue/queue.ts";
import { inTurns, openRunner } from "../queue/runner.ts";
import { nowIso, type KnowledgeBase } from "../resources/knowledge-base.ts";
import { Refusal } from "../resources/refusal.ts";
import { answerEventId, type NewDelivery } from "../store/webhooks.ts";
import type { Chat } from "./chat.ts";
import { webhookTarget } from "./webhook-target.ts";

/** Jobs in progress at once; questions that wait for their response go first. */
const WIDTH = 4;
/** Extra jobs, each of an account without one in progress, so that no account waits for another's slow images. */
const GUESTS_MAX = 2;
/** Runs of a job whose process could not be started. */
const TRIES_MAX = 3;
/** How long a job that found the service busy keeps its slot before it may start again. */
const BUSY_MS = 1_000;
/** First backoff after the disk was full, doubled each time, and the longest. */
const FULL_MS = 60_000;
const FULL_MS_MAX = 10 * 60_000;
/** Longest time that a question waits for a full disk, as long as its message is retried; then it fails. */
const FULL_WAIT_MS_MAX = 24 * 60 * 60_000;
/** Temporary failures, which a client would retry; a job is retried by itself. */
const BUSY_CODES: ReadonlySet<string> = new Set([
  "overloaded",
  "ingest_busy",
  "extractor_busy",
  "store_busy",
]);

/** Answers the requests whose answers go to a webhook. */
export interface ChatJobRunner {
  /** Checks for work. Call it at the start and whenever a job is put. */
  wake(this: void): void;
  figures(accountId: string): Promise<QuestionFigures>;
  /** Aborts running jobs; the next start runs them again. */
  close(): Promise<void>;
}

/** The outcome of a question whose answer goes to a webhook. */
export type QuestionOutcome = "answered" | "failed";

/** Questions of an account whose answers go to webhooks; `failed`: since the service started. */
export type QuestionFigures = QueueFigures;

/** The dependencies of a runner. */
export interface ChatJobParts {
  readonly kb: KnowledgeBase;
  readonly chat: Pick<Chat, "recall" | "run">;
  /** Called when a job ends. `code` is the code of its failure, if any. */
  readonly onEnded: (messageId: string, code: string | undefined) => void;
  /** Called when questions start to wait because the disk is full. */
  readonly onFull: (error: unknown) => void;
  /** Reports failures that are not a request's own. */
  readonly onProblem: (error: unknown) => void;
}

/** Opens the runner. It does nothing before `wake`. */
export function openChatJobs({ kb, chat, onEnded, onFull, onProblem }: ChatJobParts): ChatJobRunner {
  const { queue } = kb;
  /** How often each job found the disk full, by number. */
  const foundFull = new Map<number, number>();
  /** Failed questions by account. */
  const failed = new Map<string, number>();

  /** A full disk cannot store that a job waits, so the job waits in memory. */
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
        throw new Refusal("internal", "The request was started several times and never completed.");
      const body = ChatBody.parse(JSON.parse(job.body));
      const request = await chat.recall(job.accountId, job.name, body);
      const deliveryOf = (response: ChatResponse): NewDelivery =>
        deliveryFor(kb, job, body, { success: true, response });
      await chat.run({ ...request, job: { lease: job, deliveryOf } }, { signal });
    } catch (error) {
      // A stop does not fail the request; the service ends the lease.
      if (signal.aborted) return;
      const isNoProcess = codeOf(error) === "extraction_failed" && job.attempts + 1 < TRIES_MAX;
      if (isBusy(error) || isNoProcess) {
        // The request itself may be why a process could not be started, so this attempt counts.
        await queue.postpone(job, { dueMs: 0, nowMs: kb.steadyMs(), counts: isNoProcess });
        await sleep(BUSY_MS, undefined, { signal, ref: false }).catch(() => undefined);
        return;
      }
      if (isFull(error) && kb.nowMs() - job.createdMs < FULL_WAIT_MS_MAX) throw error;
      const failure = kb.explain(error);
      await deliverFailure(kb, job, failure);
      failed.set(job.accountId, (failed.get(job.accountId) ?? 0) + 1);
      onEnded(job.name, failure.code);
      return;
    }
    onEnded(job.name, undefined);
  };
  const runner = openRunner({
    queue,
    name: "chat",
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

/** Delivers the failure in place of an answer, and ends the job with it. */
async function deliverFailure(
  kb: KnowledgeBase,
  job: LeasedJob,
  { code, message, hint, field }: ReturnType<KnowledgeBase["explain"]>,
): Promise<void> {
  const failure = {
    code,
    message,
    ...(hint === undefined ? {} : { hint }),
    ...(field === undefined ? {} : { field }),
  };
  const body = ChatBody.parse(JSON.parse(job.body));
  await kb.records.addTurn({
    accountId: job.accountId,
    agentId: body.agent_id,
    threadId: undefined,
    messageId: job.name,
    turn: undefined,
    reads: [],
    recalls: undefined,
    files: [],
    images: [],
    nowIso: nowIso(kb),
    job,
    delivery: deliveryFor(kb, job, body, { success: false, error: failure }),
  });
}

/** Chooses the questions to start now. Accounts take turns. Pure. */
function choose(due: readonly WaitingJob[], running: readonly WaitingJob[]): readonly WaitingJob[] {
  const active = [...running];
  const chosen: WaitingJob[] = [];
  /** Accounts with a job that waits until all their other jobs end. */
  const blocked = new Set<string>();
  for (const job of inTurns(due, running, ({ accountId }) => accountId)) {
    const { accountId } = job;
    const runs = active.some((each) => each.accountId === accountId);
    if (active.length >= WIDTH && (runs || active.length >= WIDTH + GUESTS_MAX)) continue;
    const admission = blocked.has(accountId) ? "next" : admit(job, active);
    if (admission === "next") blocked.add(accountId);
    if (admission !== "now") continue;
    active.push(job);
    chosen.push(job);
  }
  return chosen;
}

/**
 * Reports whether a write failed because the disk is full. SQLite may also report this as a file that it cannot create or extend,
 * which is not the question's fault either.
 */
function isFull(error: unknown): boolean {
  return saysFull(error) || codeOf(error) === "store_unreachable";
}

/** Reports whether a request failed because of load and not because of itself. */
function isBusy(error: unknown): boolean {
  return error instanceof KbsyncError && BUSY_CODES.has(error.code);
}

/** Returns the message that delivers an answer. It has the same `webhook-id` each time. */
function deliveryFor(
  kb: KnowledgeBase,
  job: LeasedJob,
  body: ChatBody,
  outcome: Pick<ChatDelivery, "success" | "response" | "error">,
): NewDelivery {
  // The host was checked when the request came, and the dial checks it again.
  const target = webhookTarget(body, () => true);
  if (target === undefined) throw new Error("a stored request has no webhook");
  const delivery: ChatDelivery = { ...outcome, message_id: job.name, variables: body.variables ?? {} };
  return {
    accountId: job.accountId,
    eventId: answerEventId(job.name),
    type: "chat.completion",
    body: JSON.stringify(delivery),
    to: { target },
    nowMs: kb.nowMs(),
  };
}
