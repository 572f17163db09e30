import { basename } from "node:path";
import type { Progress } from "../../wire/daemon-status.ts";
import type { Prepared } from "../actions/prepare.ts";
import type { Activity } from "../ledger/activity.ts";
import type { Ledger } from "../ledger/ledger.ts";
import { kindOfName } from "../../formats/kinds.ts";
import { openQueue, type WorkQueue } from "../queue/queue.ts";
import type { Send, YieldSlot } from "../queue/sending.ts";
import type { JobKind } from "../queue/order.ts";
import type { RelativePath } from "../plan/model.ts";
import type { Job } from "./source.ts";

/** The daemon's queue: jobs of all sources, read and recorded together, then sent concurrently. */
export interface Work extends Pick<WorkQueue<Job>, "push" | "setWidth" | "stop"> {
  /** Ends the job of a file that is prepared and not in flight: something happened to the file. */
  withdraw(source: number, path: RelativePath): void;
  progress(): Progress;
  /** Records the result of a job, which is reported before the job ends. */
  reported(activity: Pick<Activity, "source" | "path" | "docId" | "action" | "outcome">): void;
}

export interface WorkOptions {
  readonly ledger: Ledger;
  readonly width: number;
  /** Whether files may wait for the limit of the configuration, behind which deletes must not wait. */
  readonly isLimited: boolean;
  readonly onError: (error: unknown) => void;
  /** Reports that nothing more can be done: jobs only pass through. */
  readonly isBroken: () => boolean;
}

/** Deletes that may be in flight beyond the width while files wait for a limit. */
const RESERVE = 2;

/** Opens the queue. */
export function openWork({ ledger, width, isLimited, onError, isBroken }: WorkOptions): Work {
  let done = 0;
  let total = 0;
  let sent = 0;
  let failed = 0;
  let bytes = 0;
  let inFlight = 0;
  const documents = { done: 0, total: 0 };
  /** Jobs that were reported as failed and have not ended. */
  const failing = new Set<string>();

  const finish = (job: Job, wasSent = false): void => {
    done += 1;
    if (failing.delete(keyOf(job))) failed += 1;
    else if (wasSent) sent += 1;
    // A report outside of a job has no end that would remove it.
    if (done === total) failing.clear();
    if (job.kind === "file") bytes += job.candidate.entry.sizeBytes;
    if (isSentAsIs(job)) documents.done += 1;
    job.source.done(job);
  };
  const sendOf = (job: Job, bytesHeld: number, run: Send<Job>["run"], drop?: () => void): Send<Job> => ({
    job,
    bytes: bytesHeld,
    run: async (yieldSlot: YieldSlot, isRecent: boolean) => {
      // A job that threw is not done: the work cannot continue, and status still counts its file as waiting.
      inFlight += 1;
      try {
        await run(yieldSlot, isRecent);
      } finally {
        inFlight -= 1;
      }
      finish(job, true);
    },
    drop: () => drop?.(),
  });
  type FileJob = Extract<Job, { kind: "file" }>;
  const prepareOf = async (job: Job): Promise<Prepared | undefined> =>
    job.kind === "file" && !isBroken() ? job.source.prepare(job.candidate) : undefined;

  const queue = openQueue<Job>({
    width,
    onError,
    reserve: isLimited ? RESERVE : 0,
    lineOf: (job) => ({ owner: job.source, kind: kindOf(job) }),
    bytesOf: (job) => (job.kind === "file" ? job.candidate.entry.sizeBytes : 0),
    prepare: async (jobs) => {
      // None may use the ledger after the batch has ended, even if another one failed.
      const settled = await Promise.allSettled(jobs.map(prepareOf));
      const prepared = settled.map((each) => {
        if (each.status === "rejected") throw each.reason;
        return each.value;
      });
      const sends: Send<Job>[] = [];
      const ready: { readonly job: FileJob; readonly work: Prepared }[] = [];
      for (const [index, job] of jobs.entries()) {
        const work = prepared[index];
        if (job.kind === "delete") sends.push(sendOf(job, 0, () => job.source.delete(job.deletion)));
        else if (work === undefined) finish(job);
        else ready.push({ job, work });
      }
      if (ready.length === 0) return sends;
      // From here on each intent is on disk before its request can leave.
      await ledger.write(() => {
        for (const { job, work } of ready) {
          const { run, drop } = job.source.depart(work);
          sends.push(sendOf(job, work.bytes, run, drop));
        }
      });
      return sends;
    },
  });

  return {
    setWidth: (next) => queue.setWidth(next),
    stop: () => queue.stop(),
    push: (jobs, how) => {
      total += jobs.length;
      documents.total += jobs.filter(isSentAsIs).length;
      queue.push(jobs, how);
    },
    withdraw: (source, path) => {
      const isTheFile = (job: Job): boolean =>
        job.kind === "file" && job.source.id === source && job.candidate.entry.path === path;
      for (const job of queue.withdraw(isTheFile)) finish(job);
    },
    progress: () => ({ done, total, sent, failed, bytes, inFlight, documents: { ...documents } }),
    reported: ({ source, path, docId, action, outcome }) => {
      if (outcome !== "refused" && outcome !== "parked") return;
      failing.add(action === "delete" ? deleteKey(docId ?? "") : fileKey(source, path));
    },
  };
}

function kindOf(job: Job): JobKind {
  if (job.kind !== "file") return "delete";
  return kindOfName(basename(job.candidate.entry.path)).kind === "content" ? "text" : "document";
}

/** A PDF or an image. */
function isSentAsIs(job: Job): boolean {
  return job.kind === "file" && kindOfName(basename(job.candidate.entry.path)).kind === "file";
}

function keyOf(job: Job): string {
  return job.kind === "file"
    ? fileKey(job.source.id, job.candidate.entry.path)
    : deleteKey(job.deletion.docId);
}

function fileKey(source: number, path: string): string {
  return `file ${source} ${path}`;
}

function deleteKey(docId: string): string {
  return `delete ${docId}`;
}
