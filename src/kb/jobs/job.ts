import { codeOf } from "../../lib/failure.ts";
import type { CreateBody } from "../../wire/resource.ts";
import type { WhileWaiting } from "../ingest/extract/extract.ts";
import type { ResourceKey } from "../store/records.ts";
import { CRASHES_MAX, isSpent } from "../queue/admission.ts";
import { jobKey } from "../queue/completions.ts";
import type { Lease, LeasedJob, QueuedJob, WaitingJob } from "../queue/queue.ts";
import { NoPlaceToWait } from "./job-slots.ts";
import { behalfOf, nowIso, type KnowledgeBase, type WhileFetching } from "../resources/knowledge-base.ts";
import type { JobBody } from "../resources/new-job.ts";
import { Refusal } from "../resources/refusal.ts";
import { contentSource, urlSource } from "../resources/source.ts";
import { applyUpdate } from "../resources/update.ts";

/** Times a job waits for what goes by itself: with the growing delays, some two hours. */
const POSTPONED_MAX = 15;
const POSTPONED_MS = 2000;
const POSTPONED_MS_MAX = 10 * 60 * 1000;

/**
 * Does a job of a resource, in the resource's turn. What it failed of stands in the resource's state then. `again`: it
 * waits, or is not for this process to do; its line says what is. `whileWaiting` runs what it waits in; a crash meanwhile
 * does not count against it, and where it finds no place to wait nothing was done. Throws where the store fails.
 */
export async function runJob(
  kb: KnowledgeBase,
  { number, crashes }: WaitingJob,
  { whileWaiting, isEarly = false }: { readonly whileWaiting?: WhileWaiting; readonly isEarly?: boolean },
): Promise<"over" | "again" | NoPlaceToWait> {
  const job = await kb.leases.take(number, isEarly);
  if (job === undefined) return "again";
  const outcome =
    // Another process crashed since: beside what the job may run is to be decided anew.
    job.crashes === crashes
      ? await attempt(whileWaiting === undefined ? kb : blameless(kb, job, whileWaiting), job)
      : await handBack(kb, job);
  kb.leases.drop(number);
  return outcome;
}

/** Lets a job of which nothing was done wait for its next turn. */
async function handBack(kb: KnowledgeBase, job: LeasedJob): Promise<"again"> {
  await kb.store.queue.postpone(job, { dueMs: 0, nowMs: kb.steadyMs(), counts: false });
  return "again";
}

/** Counts no crash against a job for as long as it waits. */
function blameless(kb: KnowledgeBase, job: LeasedJob, run: WhileWaiting): KnowledgeBase {
  const rest = (): Promise<void> => kb.leases.setWorking(job, false);
  const begin = async (): Promise<void> => {
    if (!kb.isEnding()) await kb.leases.setWorking(job, true);
  };
  const whileWaiting: WhileWaiting = (work, heldChars) =>
    run(async () => {
      await rest();
      try {
        return await work();
      } finally {
        await begin();
      }
    }, heldChars);
  const whileFetching: WhileFetching = (fetch) =>
    // One that may have ended the process keeps its slot, so that no other such document is under way beside it.
    job.crashes > 0
      ? fetch()
      : whileWaiting(async () => {
          try {
            return await fetch(begin);
          } finally {
            await rest();
          }
        }, 0);
  return { ...kb, whileWaiting, whileFetching };
}

async function attempt(kb: KnowledgeBase, job: LeasedJob): Promise<"over" | "again" | NoPlaceToWait> {
  if (isSpent(job.crashes)) {
    const message = `The service ended ${CRASHES_MAX} times while it took this in, and tries no more.`;
    await kb.store.failJob(job, { code: "internal", message }, nowIso(kb));
    return "over";
  }
  try {
    await complete(kb, job);
    return "over";
  } catch (error) {
    // A stop ends what reads documents: the failure is not this document's, and the next start begins its job anew.
    if (kb.isEnding() || codeOf(error) === "lease_lost") return "again";
    if (error instanceof NoPlaceToWait) {
      await handBack(kb, job);
      return error;
    }
    const { code, message, hint, retryAfterSeconds } = kb.explain(error);
    if (retryAfterSeconds !== undefined && job.attempts < POSTPONED_MAX) {
      const delayMs = Math.max(POSTPONED_MS * 2 ** job.attempts, retryAfterSeconds * 1000);
      const nowMs = kb.steadyMs();
      await kb.store.queue.postpone(job, {
        dueMs: nowMs + Math.min(POSTPONED_MS_MAX, delayMs),
        nowMs,
        counts: true,
      });
      return "again";
    }
    const words = hint === undefined ? message : `${message} ${hint}`;
    await kb.store.failJob(job, { code, message: words }, nowIso(kb));
    return "over";
  }
}

/**
 * Does all jobs of a resource before a change that was asked for later, so that the last to arrive wins. To be called in
 * the resource's turn.
 */
export async function finishJobs(kb: KnowledgeBase, at: ResourceKey): Promise<void> {
  let last: number | undefined;
  for (;;) {
    const job = await firstJob(kb, jobKey(at));
    if (job === undefined) return;
    // One that crashed a process is begun again by the runner alone, which knows beside what.
    if (job.crashes > 0 || job.number === last) {
      throw new Refusal("ingest_busy", "An earlier change of this resource waits to be taken in.", {
        retryAfterSeconds: 5,
      });
    }
    await runJob(kb, job, { isEarly: true });
    last = job.number;
  }
}

/** The first job of a resource. */
export function firstJob(kb: KnowledgeBase, line: string): Promise<QueuedJob | undefined> {
  return kb.store.queue.first({ queue: "ingest", line, nowMs: kb.steadyMs() });
}

async function complete(kb: KnowledgeBase, job: LeasedJob): Promise<void> {
  const at = { accountId: job.accountId, id: job.name };
  const body = JSON.parse(job.body) as JobBody; // written by newJob
  if ("update" in body) await applyUpdate(kb, at, body.update, { job });
  else await completeCreate(kb, at, body.create, job);
}

async function completeCreate(
  kb: KnowledgeBase,
  at: ResourceKey,
  { url, content }: Pick<CreateBody, "url" | "content">,
  job: Lease,
): Promise<void> {
  const resource = await kb.store.resource(at);
  if (resource === undefined) return;
  const source = url === undefined ? contentSource(kb, content ?? "") : await urlSource(kb, resource, url);
  const chunking = await kb.ingest.chunk(source.content, resource.settings, resource.tier, {
    title: resource.title,
    warning: source.warning,
    place: { accountId: at.accountId, resourceId: at.id },
    behalf: behalfOf(kb, resource),
  });
  await kb.store.updateResource(
    {
      accountId: at.accountId,
      id: at.id,
      content: source.content,
      ...(source.url === null ? {} : { url: source.url }),
      nowIso: nowIso(kb),
      completesCreate: true,
    },
    chunking,
    { job },
  );
}
