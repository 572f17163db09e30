import { setTimeout as sleep } from "node:timers/promises";
import { codeOf } from "../../lib/failure.ts";
import type { CreateBody } from "../../wire/resource.ts";
import type { WhileWaiting } from "../ingest/extract/extract.ts";
import type { ResourceKey } from "../store/resources.ts";
import { isExhausted } from "../queue/admission.ts";
import { jobKey } from "../queue/waits.ts";
import { type Lease, type LeasedJob, LOCKED_MS, type QueuedJob, type WaitingJob } from "../queue/queue.ts";
import { WaitLimitReached } from "./job-slots.ts";
import { requesterOf, nowIso, type KnowledgeBase, type WhileFetching } from "../resources/knowledge-base.ts";
import type { JobBody } from "../resources/new-job.ts";
import { Refusal } from "../resources/refusal.ts";
import { contentSource, textChange, urlSource } from "../resources/source.ts";
import { applyUpdate, repeatIfChanged } from "../resources/update.ts";

/** How often a job is retried after a temporary failure: some two hours, with growing delays. */
const POSTPONED_MAX = 15;
const POSTPONED_MS = 2000;
const POSTPONED_MS_MAX = 10 * 60 * 1000;
/** Longest wait of a change for jobs that another process works on, shorter than proxy timeouts, and the time between two checks. */
const ELSEWHERE_MS = 30_000;
const ELSEWHERE_PAUSE_MS = 100;

/**
 * How a job ended. `again`: it waits; `elsewhere`: it is gone, or another process works on it: read the first job of its line. After
 * `WaitLimitReached` it has done nothing.
 */
type JobOutcome = "over" | "again" | "elsewhere" | WaitLimitReached;

/**
 * Runs a job of a resource; the caller holds the resource's turn. The resource's state records a failure. `whileWaiting` wraps the
 * job's waits: a crash during one does not count against the job. Throws when the store fails.
 */
export async function runJob(
  kb: KnowledgeBase,
  { number, crashes }: WaitingJob,
  { whileWaiting, isEarly = false }: { readonly whileWaiting?: WhileWaiting; readonly isEarly?: boolean },
): Promise<JobOutcome> {
  const job = await kb.leases.take(number, isEarly);
  if (job === undefined) return "elsewhere";
  const outcome =
    // Another process crashed since: which jobs this one may run with must be decided again.
    job.crashes === crashes
      ? await attempt(whileWaiting === undefined ? kb : withUncountedWaits(kb, job, whileWaiting), job)
      : await handBack(kb, job);
  kb.leases.drop(number);
  if (outcome === "over") kb.notices?.announce("ended", job.line);
  return outcome;
}

/** Puts a job back that has done nothing. */
async function handBack(kb: KnowledgeBase, job: LeasedJob): Promise<"again"> {
  await kb.queue.postpone(job, { dueMs: 0, nowMs: kb.steadyMs(), counts: false });
  return "again";
}

/** Counts no crash against a job while it waits. */
function withUncountedWaits(kb: KnowledgeBase, job: LeasedJob, run: WhileWaiting): KnowledgeBase {
  const pause = (): Promise<void> => kb.leases.setWorking(job, false);
  const resume = async (): Promise<void> => {
    if (!kb.isEnding()) await kb.leases.setWorking(job, true);
  };
  const whileWaiting: WhileWaiting = (work, heldChars) =>
    run(async () => {
      await pause();
      try {
        return await work();
      } finally {
        await resume();
      }
    }, heldChars);
  const whileFetching: WhileFetching = (fetch) =>
    // A suspect keeps its slot, so that no other suspect runs at the same time.
    job.crashes > 0
      ? fetch()
      : whileWaiting(async () => {
          try {
            return await fetch(resume);
          } finally {
            await pause();
          }
        }, 0);
  return { ...kb, lane: "backlog", whileWaiting, whileFetching };
}

async function attempt(kb: KnowledgeBase, job: LeasedJob): Promise<"over" | "again" | WaitLimitReached> {
  if (isExhausted(job.crashes)) {
    const message = `The service crashed ${job.crashes} times while it processed this document, and does not try again.`;
    await kb.records.failJob(job, { code: "internal", message }, nowIso(kb));
    return "over";
  }
  try {
    await complete(kb, job);
    return "over";
  } catch (error) {
    // A stop ends the processes that read documents: the failure is not the document's, and the next start repeats its job.
    if (kb.isEnding() || codeOf(error) === "lease_lost") return "again";
    if (error instanceof WaitLimitReached) {
      await handBack(kb, job);
      return error;
    }
    const { code, message, hint, retryAfterSeconds } = kb.explain(error);
    // An outage of the store of files, or a busy machine, however long, is no failure of the document.
    const isPatient =
      job.attempts < POSTPONED_MAX || code === "files_unavailable" || code === "extractor_busy";
    if (retryAfterSeconds !== undefined && isPatient) {
      const delayMs = Math.max(POSTPONED_MS * 2 ** job.attempts, retryAfterSeconds * 1000);
      const nowMs = kb.steadyMs();
      await kb.queue.postpone(job, {
        dueMs: nowMs + Math.min(POSTPONED_MS_MAX, delayMs),
        nowMs,
        counts: true,
      });
      return "again";
    }
    const shownMessage = hint === undefined ? message : `${message} ${hint}`;
    await kb.records.failJob(job, { code, message: shownMessage }, nowIso(kb));
    return "over";
  }
}

/**
 * Runs all jobs of a resource before a later change, so that the last request wins. The caller holds the resource's turn.
 */
export async function finishJobs(kb: KnowledgeBase, at: ResourceKey): Promise<void> {
  const endMs = performance.now() + ELSEWHERE_MS;
  let last: number | undefined;
  for (;;) {
    const job = await firstJob(kb, jobKey(at));
    if (job === undefined) return;
    // Only the runner restarts a job that crashed a process: it knows which jobs may run with it.
    if (job.crashes > 0 || job.number === last || performance.now() > endMs) {
      throw new Refusal("ingest_busy", "An earlier change of this resource is still queued.", {
        retryAfterSeconds: 5,
      });
    }
    // Another process works on it: this one notices its end when it reads again.
    if ((await runJob(kb, job, { isEarly: true })) === "elsewhere") await sleep(ELSEWHERE_PAUSE_MS);
    else last = job.number;
  }
}

/**
 * Reads the first job of a resource after one of its jobs ended with `outcome`. It may be the same one, locked by a transaction for
 * minutes. That looks free if its lease has ended, so it is due after a pause.
 */
export async function nextJob(
  kb: KnowledgeBase,
  { number, line }: QueuedJob,
  outcome: Exclude<JobOutcome, WaitLimitReached>,
): Promise<QueuedJob | undefined> {
  const first = await firstJob(kb, line);
  if (outcome !== "elsewhere" || first?.number !== number) return first;
  return { ...first, dueMs: Math.max(first.dueMs, kb.steadyMs() + LOCKED_MS) };
}

/** Reads the first job of a resource. */
function firstJob(kb: KnowledgeBase, line: string): Promise<QueuedJob | undefined> {
  return kb.queue.first({ queue: "ingest", line, nowMs: kb.steadyMs() });
}

async function complete(kb: KnowledgeBase, job: LeasedJob): Promise<void> {
  const at = { accountId: job.accountId, id: job.name };
  const body = JSON.parse(job.body) as JobBody; // written by newJob
  if ("update" in body) await applyUpdate(kb, at, body.update, { job });
  else await repeatIfChanged(() => completeCreate(kb, at, body.create, job));
}

async function completeCreate(
  kb: KnowledgeBase,
  at: ResourceKey,
  { url, ...body }: Pick<CreateBody, "url" | "content" | "locations">,
  job: Lease,
): Promise<void> {
  const resource = await kb.records.resource(at);
  if (resource === undefined) return;
  const source = url === undefined ? contentSource(kb, body) : await urlSource(kb, resource, url);
  const chunking = await kb.ingest.chunk(source.content, resource.settings, {
    warning: source.warning,
    requester: requesterOf(kb, resource),
  });
  await kb.records.updateResource(
    {
      accountId: at.accountId,
      id: at.id,
      ...textChange(source),
      ...(source.url === null ? {} : { url: source.url }),
      nowIso: nowIso(kb),
      completesCreate: true,
      basedOn: { version: resource.version, title: resource.title },
    },
    chunking,
    { job },
  );
}
