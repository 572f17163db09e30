import type { CreateBody, UpdateBody } from "../../wire/resource.ts";
import type { WhileWaiting } from "../ingest/extract/extract.ts";
import type { Job } from "../store/jobs.ts";
import type { ResourceKey } from "../store/records.ts";
import { CRASHES_MAX, isSpent } from "../queue/admission.ts";
import { POSTPONED_MS_MAX } from "./job-line.ts";
import { NoPlaceToWait } from "./job-slots.ts";
import { behalfOf, nowIso, type KnowledgeBase, type WhileFetching } from "../resources/knowledge-base.ts";
import { Refusal } from "../resources/refusal.ts";
import { contentSource, urlSource } from "../resources/source.ts";
import { applyUpdate } from "../resources/update.ts";

/** Times a job waits for what goes by itself: with the growing delays, some two hours. */
const POSTPONED_MAX = 15;
const POSTPONED_MS = 2000;

/**
 * Does the first job of a resource, if it has one. To be called in the resource's turn. The job is over when it resolves,
 * or postponed; what it failed of stands in the resource's state then. `whileWaiting` runs what it waits in; a crash meanwhile
 * does not count against it, and where it finds no place to wait nothing was done. Throws where the store fails.
 */
export async function runFirstJob(
  kb: KnowledgeBase,
  at: ResourceKey,
  whileWaiting?: WhileWaiting,
): Promise<"none" | "over" | "postponed" | NoPlaceToWait> {
  const job = await kb.store.jobOf(at);
  if (job === undefined) return "none";
  kb.begunJobs.set(job.number, job.begun);
  try {
    const begun = await kb.store.beginJob(job.number);
    // Its resource was deleted meanwhile, which waits for nobody's turn.
    if (begun === 0) return "over";
    if (isSpent(begun - 1)) {
      const message = `The service ended ${CRASHES_MAX} times while it took this in, and tries no more.`;
      await kb.store.failJob(job.number, { code: "internal", message }, nowIso(kb));
      return "over";
    }
    return await complete(whileWaiting === undefined ? kb : blameless(kb, job, whileWaiting), at, job);
  } finally {
    kb.begunJobs.delete(job.number);
  }
}

/**
 * Takes back that this process began the jobs that are under way. To be called when the service stops: work that a stop
 * breaks off is not one of the times that a document took the process with it.
 */
export async function handBackJobs({
  store,
  begunJobs,
}: Pick<KnowledgeBase, "store" | "begunJobs">): Promise<void> {
  await Promise.all([...begunJobs].map(([number, begun]) => store.handBackJob(number, begun)));
}

/** Takes the beginning of a job back for as long as it waits: whatever ends the process then is not its doing. */
function blameless(kb: KnowledgeBase, { number, begun }: Job, run: WhileWaiting): KnowledgeBase {
  const handBack = (): Promise<void> => kb.store.handBackJob(number, begun);
  const begin = async (): Promise<void> => {
    if (!kb.isEnding()) await kb.store.beginJob(number);
  };
  const whileWaiting: WhileWaiting = (work, heldChars) =>
    run(async () => {
      await handBack();
      try {
        return await work();
      } finally {
        await begin();
      }
    }, heldChars);
  const whileFetching: WhileFetching = (fetch) =>
    // One that may have ended the process keeps its slot, so that no other such document is under way beside it.
    begun > 0
      ? fetch()
      : whileWaiting(async () => {
          try {
            return await fetch(begin);
          } finally {
            await handBack();
          }
        }, 0);
  return { ...kb, whileWaiting, whileFetching };
}

async function complete(
  kb: KnowledgeBase,
  at: ResourceKey,
  job: Job,
): Promise<"over" | "postponed" | NoPlaceToWait> {
  try {
    await (job.kind === "create" ? completeCreate(kb, at, job) : completeUpdate(kb, at, job));
    return "over";
  } catch (error) {
    if (error instanceof NoPlaceToWait) {
      await kb.store.handBackJob(job.number, job.begun);
      return error;
    }
    // A stop ends what reads documents: the failure is not this document's, and the next start begins its job anew.
    if (kb.isEnding()) {
      await kb.store.handBackJob(job.number, job.begun);
      return "postponed";
    }
    const { code, message, hint, retryAfterSeconds } = kb.explain(error);
    if (retryAfterSeconds !== undefined && job.postponed < POSTPONED_MAX) {
      const delayMs = Math.min(POSTPONED_MS_MAX, POSTPONED_MS * 2 ** job.postponed);
      await kb.store.postponeJob(
        job.number,
        kb.steadyMs() + Math.max(delayMs, Math.min(POSTPONED_MS_MAX, retryAfterSeconds * 1000)),
      );
      return "postponed";
    }
    const words = hint === undefined ? message : `${message} ${hint}`;
    await kb.store.failJob(job.number, { code, message: words }, nowIso(kb));
    return "over";
  }
}

/**
 * Does all jobs of a resource before a change that was asked for later, so that the last to arrive wins. To be called in
 * the resource's turn.
 */
export async function finishJobs(kb: KnowledgeBase, at: ResourceKey): Promise<void> {
  for (;;) {
    const job = await kb.store.jobOf(at);
    if (job === undefined) return;
    // One that was under way when the process ended is begun again by the runner alone, which knows beside what.
    if (job.begun > 0 || (await runFirstJob(kb, at)) === "postponed") {
      throw new Refusal("ingest_busy", "An earlier change of this resource waits to be taken in.", {
        retryAfterSeconds: 5,
      });
    }
  }
}

async function completeCreate(kb: KnowledgeBase, at: ResourceKey, job: Job): Promise<void> {
  const resource = await kb.store.resource(at);
  if (resource === undefined) return;
  const { url, content } = JSON.parse(job.body) as Pick<CreateBody, "url" | "content">; // written by newJob
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
    { job: job.number },
  );
}

async function completeUpdate(kb: KnowledgeBase, at: ResourceKey, job: Job): Promise<void> {
  const body = JSON.parse(job.body) as UpdateBody; // written by newJob
  await applyUpdate(kb, at, body, { job: job.number });
}
