import { setTimeout as sleep } from "node:timers/promises";
import { codeOf } from "../../lib/failure.ts";
import type { WhileWaiting } from "../ingest/extract/extract.ts";
import type { Failure } from "../store/request-note.ts";
import type { ResourceKey } from "../store/resources.ts";
import { isExhausted } from "../queue/admission.ts";
import { jobKey } from "../queue/waits.ts";
import { ingestLine, type LeasedJob } from "../queue/queue.ts";
import { needName, WaitLimitReached } from "./job-slots.ts";
import { openKeptPages, type KeptPages } from "./kept-pages.ts";
import { nowIso, type KnowledgeBase, type WhileFetching } from "../resources/knowledge-base.ts";
import { Refusal } from "../resources/refusal.ts";
import { applyUpdate } from "../resources/update.ts";
import { hasText, type JobBody } from "../store/rows/job-body.ts";

/** How often a job is retried after a temporary failure: some two hours, with growing delays. */
const POSTPONED_MAX = 15;
const POSTPONED_MS = 2000;
const POSTPONED_MS_MAX = 10 * 60 * 1000;
/**
 * Failures that say nothing about the document: the store of files is away, or the machine is too busy. They are retried at this
 * interval until they end, and do not count as one of its tries.
 */
const MACHINE_FAILURES: ReadonlySet<string> = new Set(["files_unavailable", "extractor_busy"]);
const MACHINE_MS = 60_000;
/** Longest wait of a change for jobs that another process works on, shorter than proxy timeouts, and the time between two checks. */
const ELSEWHERE_MS = 30_000;
const ELSEWHERE_PAUSE_MS = 100;

/**
 * Runs a leased job of a resource; the caller holds the resource's turn. The resource's state records a failure. `crashes`: as known when
 * the job was chosen. `slot` wraps the job's waits: a crash during one does not count against the job. Throws when the store fails.
 */
export async function runLeased(
  kb: KnowledgeBase,
  job: LeasedJob,
  crashes: number,
  slot?: { readonly whileWaiting: WhileWaiting },
): Promise<void> {
  const leased = { ...kb, signal: kb.leases.signal(job) };
  // Another process crashed since: which jobs this one may run with must be decided again.
  if (job.crashes === crashes)
    await attempt(slot === undefined ? leased : withUncountedWaits(leased, job, slot.whileWaiting), job);
  else await handBack(kb, job);
  kb.leases.drop(job.number);
  kb.notices?.announce("ended", jobKey({ accountId: job.accountId, id: job.name }));
}

/** Puts a job back that has done nothing. */
async function handBack(kb: KnowledgeBase, job: LeasedJob, line = job.line): Promise<void> {
  await kb.queue.postpone(job, { dueMs: 0, nowMs: kb.steadyMs(), counts: false, line });
}

/** Counts no crash against a job while it waits. */
function withUncountedWaits(kb: KnowledgeBase, job: LeasedJob, run: WhileWaiting): KnowledgeBase {
  const pause = (): Promise<void> => kb.leases.setWorking(job, false);
  const resume = async (): Promise<void> => {
    if (!kb.isEnding()) await kb.leases.setWorking(job, true);
  };
  const whileWaiting: WhileWaiting = (work, heldChars, kind) =>
    run(
      async () => {
        await pause();
        try {
          return await work();
        } finally {
          await resume();
        }
      },
      heldChars,
      kind,
    );
  const whileFetching: WhileFetching = (fetch) =>
    // A suspect keeps its slot, so that no other suspect runs at the same time.
    job.crashes > 0
      ? fetch()
      : whileWaiting(
          async () => {
            try {
              return await fetch(resume);
            } finally {
              await pause();
            }
          },
          0,
          "read",
        );
  return { ...kb, lane: "backlog", rank: job.changedMs, whileWaiting, whileFetching };
}

async function attempt(kb: KnowledgeBase, job: LeasedJob): Promise<void> {
  const body = JSON.parse(job.body) as JobBody; // written by newJob or merged from such
  const pages = openKeptPages(kb.queue, job);
  if (isExhausted(job.crashes)) {
    const message = `The service crashed ${job.crashes} times while it processed this document, and does not try again.`;
    await fail(kb, job, body, { code: "internal", message }, pages);
    return;
  }
  try {
    const keeping = { ...kb, memoryOf: pages.memoryOf };
    await applyUpdate(keeping, { accountId: job.accountId, id: job.name }, body.update, { job }, body);
  } catch (error) {
    // A stop ends the processes that read documents: the failure is not the document's, and the next start repeats its job.
    if (kb.isEnding() || codeOf(error) === "lease_lost") return;
    if (error instanceof WaitLimitReached) {
      await handBack(kb, job, ingestLine(job.accountId, job.ownerId, needName(error.reservation)));
      return;
    }
    const { code, message, hint, retryAfterSeconds } = kb.explain(error);
    if (await retryLater(kb, job, { code, retryAfterSeconds }, pages)) return;
    await fail(kb, job, body, { code, message: hint === undefined ? message : `${message} ${hint}` }, pages);
  }
}

/** Postpones a job after a temporary failure. False: it has failed for good. */
async function retryLater(
  kb: KnowledgeBase,
  job: LeasedJob,
  { code, retryAfterSeconds }: Pick<ReturnType<KnowledgeBase["explain"]>, "code" | "retryAfterSeconds">,
  pages: KeptPages,
): Promise<boolean> {
  const counts = !MACHINE_FAILURES.has(code);
  if (retryAfterSeconds === undefined || (counts && job.attempts >= POSTPONED_MAX)) return false;
  if (!(await pages.save())) return true;
  const delayMs = Math.max(counts ? POSTPONED_MS * 2 ** job.attempts : MACHINE_MS, retryAfterSeconds * 1000);
  const nowMs = kb.steadyMs();
  await kb.queue.postpone(job, { dueMs: nowMs + Math.min(POSTPONED_MS_MAX, delayMs), nowMs, counts });
  return true;
}

/**
 * Ends a failed job, and writes what other requests changed besides the text: without their settings if those fail too. Postpones the job
 * if that fails for now. Does nothing if the lease was lost.
 */
async function fail(
  kb: KnowledgeBase,
  job: LeasedJob,
  { update, apart = {} }: JobBody,
  failure: Failure,
  pages: KeptPages,
): Promise<void> {
  const at = { accountId: job.accountId, id: job.name };
  const { whileWaiting: _, whileFetching: __, ...here } = kb;
  // Without a text, the settings are what failed.
  const { settings, ...others } = hasText(update) ? apart : { ...update, settings: undefined };
  for (const part of settings === undefined ? [others] : [{ ...others, settings }, others]) {
    if (Object.values(part).every((value) => value === undefined)) continue;
    try {
      await applyUpdate(here, at, part, { job, failure });
      return;
    } catch (error) {
      if (codeOf(error) === "lease_lost" || (await retryLater(kb, job, kb.explain(error), pages))) return;
    }
  }
  await kb.records.failJob(job, failure, nowIso(kb));
}

/** Runs the queued change of a resource before a later one, so that the last request wins. The caller holds the resource's turn. */
export async function finishJobs(kb: KnowledgeBase, { accountId, id }: ResourceKey): Promise<void> {
  const endMs = performance.now() + ELSEWHERE_MS;
  let last: number | undefined;
  for (;;) {
    const waiting = await kb.queue.change({ accountId, id, nowMs: kb.steadyMs() });
    if (waiting === undefined) return;
    const { number, crashes } = waiting;
    // Only the runner restarts a job that crashed a process: it knows which jobs may run with it.
    if (crashes > 0 || number === last || performance.now() > endMs) {
      throw new Refusal("ingest_busy", "An earlier change of this resource is still queued.", {
        retryAfterSeconds: 5,
      });
    }
    const job = await kb.leases.take(number, true);
    if (job !== undefined) {
      await runLeased(kb, job, crashes).catch(async (error: unknown) => {
        // The store failed. Renewed further, the lease would keep the job from the runner. If this fails too, it ends by time.
        kb.leases.drop(number);
        await handBack(kb, job).catch(() => undefined);
        throw error;
      });
      last = number;
    } else await sleep(ELSEWHERE_PAUSE_MS); // another process works on it
  }
}
