import { basename } from "node:path";
import type { Progress } from "../../../wire/daemon-status.ts";
import type { Prepared } from "../../send/prepare.ts";
import type { Activity } from "../../ledger/activity.ts";
import type { Ledger } from "../../ledger/ledger.ts";
import { kindOfName } from "../../../formats/kinds.ts";
import { openQueue, type Send, type YieldSlot } from "../../send/queue/queue.ts";
import type { JobKind } from "../../send/queue/order.ts";
import { departJob, endJob, prepareJob } from "./file-jobs.ts";
import type { Job } from "./parts.ts";
import type { RelativePath } from "../../plan/model.ts";

/** The daemon's queue: jobs of all sources, read and recorded together, then sent concurrently. */
export type Work = ReturnType<typeof openWork>;

export interface WorkOptions {
  readonly ledger: Ledger;
  readonly width: number;
  readonly onError: (error: unknown) => void;
  /** Reports that nothing more can be done: jobs only pass through. */
  readonly isBroken: () => boolean;
}

/** Opens the queue. */
export function openWork({ ledger, width, onError, isBroken }: WorkOptions) {
  const counts = openCounts();
  const finish = (job: Job, wasSent = false): void => {
    counts.end(job, wasSent);
    if (job.kind === "file") endJob(job.source, job.candidate);
    else job.deletes.end(job.deletion);
  };
  const sendOf = (job: Job, bytesHeld: number, run: Send<Job>["run"], drop?: () => void): Send<Job> => ({
    job,
    bytes: bytesHeld,
    run: async (yieldSlot: YieldSlot, isRecent: boolean) => {
      // A job that threw is not done: the work cannot continue, and status still counts its file as waiting.
      counts.fly(1);
      try {
        await run(yieldSlot, isRecent);
      } finally {
        counts.fly(-1);
      }
      finish(job, true);
    },
    drop: () => drop?.(),
  });
  type FileJob = Extract<Job, { kind: "file" }>;
  /** Number of files that were read. */
  let read = 0;
  const prepareOf = async (job: Job): Promise<Prepared | undefined> => {
    if (job.kind !== "file" || isBroken()) return undefined;
    const prepared = await prepareJob(job.source, job.candidate);
    read += 1;
    return prepared;
  };

  const queue = openQueue<Job>({
    width,
    onError,
    lineOf: (job) => ({ owner: sourceOf(job), kind: kindOf(job) }),
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
        if (job.kind === "delete") sends.push(sendOf(job, 0, () => job.deletes.send(job.deletion)));
        else if (work === undefined) finish(job);
        else ready.push({ job, work });
      }
      if (ready.length === 0) return sends;
      // From here on each intent is on disk before its request can leave.
      await ledger.write(() => {
        for (const { job, work } of ready) {
          const { run, drop } = departJob(job.source, work);
          sends.push(sendOf(job, work.bytes, run, drop));
        }
      });
      return sends;
    },
  });

  return {
    setWidth: (next: number): void => queue.setWidth(next),
    stop: (): Promise<void> => queue.stop(),
    push: (jobs: readonly Job[], how?: { readonly recent?: boolean }): void => {
      counts.add(jobs);
      queue.push(jobs, how);
    },
    /** Ends the job of a file that is prepared and not in flight: something happened to the file. */
    withdraw: (source: number, path: RelativePath): void => {
      const isTheFile = (job: Job): boolean =>
        job.kind === "file" && sourceOf(job) === source && job.candidate.entry.path === path;
      for (const job of queue.withdraw(isTheFile)) finish(job);
    },
    progress: counts.progress,
    /** Returns how many files were read. */
    read: (): number => read,
    reported: counts.report,
  };
}

/** Opens the counts of jobs of this run. */
function openCounts() {
  let done = 0;
  let total = 0;
  let sent = 0;
  let failed = 0;
  let bytes = 0;
  let inFlight = 0;
  const documents = { done: 0, total: 0 };
  /** Jobs that were reported as failed and have not ended. */
  const failing = new Set<string>();
  return {
    add: (jobs: readonly Job[]): void => {
      total += jobs.length;
      documents.total += jobs.filter(isSentAsIs).length;
    },
    fly: (more: number): void => {
      inFlight += more;
    },
    end: (job: Job, wasSent: boolean): void => {
      done += 1;
      if (failing.delete(keyOf(job))) failed += 1;
      else if (wasSent) sent += 1;
      // A report outside of a job has no end that would remove it.
      if (done === total) failing.clear();
      if (job.kind === "file") bytes += job.candidate.entry.sizeBytes;
      if (isSentAsIs(job)) documents.done += 1;
    },
    progress: (): Progress => ({
      done,
      total,
      sent,
      failed,
      bytes,
      inFlight,
      documents: { ...documents },
    }),
    /** Records the result of a job, which is reported before the job ends. */
    report: ({ source, path, docId, action, outcome }: Activity & { readonly source: number }): void => {
      if (outcome !== "refused" && outcome !== "parked") return;
      failing.add(action === "delete" ? deleteKey(docId ?? "") : fileKey(source, path));
    },
  };
}

/** Returns the number of a job's source in the ledger. */
function sourceOf(job: Job): number {
  return job.kind === "file" ? job.source.options.row.id : job.deletes.source;
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
    ? fileKey(sourceOf(job), job.candidate.entry.path)
    : deleteKey(job.deletion.docId);
}

function fileKey(source: number, path: string): string {
  return `file ${source} ${path}`;
}

function deleteKey(docId: string): string {
  return `delete ${docId}`;
}
