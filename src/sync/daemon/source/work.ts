import { basename } from "node:path";
import type { Progress } from "../../../wire/daemon-status.ts";
import type { Activity } from "../../ledger/activity.ts";
import type { Ledger } from "../../ledger/ledger.ts";
import { kindOfName } from "../../../formats/kinds.ts";
import { dropCreate } from "../../send/create.ts";
import { prepareFile, type Prepared } from "../../send/prepare.ts";
import type { JobKind } from "../../send/queue/order.ts";
import { openQueue, type Send, type YieldSlot } from "../../send/queue/queue.ts";
import { send } from "../../send/send.ts";
import type { Candidate, RelativePath } from "../../plan/model.ts";
import { type Job, jobEnded, type SourceParts } from "./parts.ts";

/** The daemon's queue: jobs of all sources, read and recorded together, then sent concurrently. */
export type Work = ReturnType<typeof openWork>;

export interface WorkOptions {
  readonly ledger: Ledger;
  readonly width: number;
  readonly onError: (error: unknown) => void;
  /** Reports that nothing more can be done: jobs only pass through. */
  readonly isBroken: () => boolean;
}

type FileJob = Extract<Job, { kind: "file" }>;

/** Opens the queue. */
export function openWork({ ledger, width, onError, isBroken }: WorkOptions) {
  const progress = { done: 0, total: 0, sent: 0, failed: 0, inFlight: 0, documents: { done: 0, total: 0 } };
  /** Number of files that were read. */
  let read = 0;
  const finish = (job: Job): void => {
    progress.done += 1;
    if (isSentAsIs(job)) progress.documents.done += 1;
    if (job.kind === "file") endJob(job.source, job.candidate);
  };
  const sendOf = (job: Job, what: Omit<Send<Job>, "job">): Send<Job> => ({
    job,
    ...what,
    run: async (yieldSlot, isRecent) => {
      // A job that threw is not done: the work cannot continue, and status still counts its file as waiting.
      progress.inFlight += 1;
      try {
        await what.run(yieldSlot, isRecent);
      } finally {
        progress.inFlight -= 1;
      }
      finish(job);
    },
  });
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
        if (job.kind === "delete") {
          const run = (): Promise<void> => job.deletes.send(job.deletion);
          sends.push(sendOf(job, { bytes: 0, run, drop: () => undefined }));
        } else if (work === undefined) finish(job);
        else ready.push({ job, work });
      }
      if (ready.length === 0) return sends;
      // From here on each intent is on disk before its request can leave.
      await ledger.write(() => {
        for (const { job, work } of ready)
          sends.push(sendOf(job, { bytes: work.bytes, ...departJob(job.source, work) }));
      });
      return sends;
    },
  });

  return {
    setWidth: (next: number): void => queue.setWidth(next),
    stop: (): Promise<void> => queue.stop(),
    push: (jobs: readonly Job[], how?: { readonly recent?: boolean }): void => {
      progress.total += jobs.length;
      progress.documents.total += jobs.filter(isSentAsIs).length;
      queue.push(jobs, how);
    },
    /** Ends the job of a file that is prepared and not in flight: something happened to the file. */
    withdraw: (source: number, path: RelativePath): void => {
      const isTheFile = (job: Job): boolean =>
        job.kind === "file" && sourceOf(job) === source && job.candidate.entry.path === path;
      for (const job of queue.withdraw(isTheFile)) finish(job);
    },
    progress: (): Progress => ({ ...progress, documents: { ...progress.documents } }),
    /** Returns how many files were read. */
    read: (): number => read,
    /** Counts the result of an action. */
    reported: ({ action, outcome }: Pick<Activity, "action" | "outcome">): void => {
      if (outcome === "refused" || outcome === "parked") progress.failed += 1;
      else if (outcome === "done" && action !== "adopt" && action !== "audit") progress.sent += 1;
    },
  };
}

/** Reads the file of a job and decides. Returns undefined if nothing must be sent. */
async function prepareJob(source: SourceParts, candidate: Candidate): Promise<Prepared | undefined> {
  const { agenda } = source;
  const { entry } = candidate;
  if (!agenda.isCurrent(entry)) return undefined;
  agenda.send(entry.path);
  const prepared = source.isStale(entry.path)
    ? undefined
    : await prepareFile(source.context, source, candidate);
  return source.isStale(entry.path) ? undefined : prepared;
}

/**
 * Writes the intent of a prepared job, inside the transaction that makes it durable. Returns what must be sent after it, or
 * dropped if it will not be.
 */
function departJob(source: SourceParts, prepared: Prepared): Pick<Send<Job>, "run" | "drop"> {
  const { options, context } = source;
  const { agenda } = source;
  const { ledger } = context;
  const outgoing = prepared.write();
  const { intent } = outgoing;
  const { path } = outgoing.candidate.entry;
  // The row is `unsure` from here on.
  if (intent === undefined) agenda.uncount(path);
  return {
    run: (yieldSlot, isRecent) => {
      // A job gives its slot away while the service works on what it has.
      const whileRead: YieldSlot = async (wait) => {
        agenda.setReading(path, "all");
        try {
          return await yieldSlot(wait);
        } finally {
          agenda.setReading(path, undefined);
        }
      };
      const contentKind = isRecent ? "recent" : "content";
      const onPictures = (): void => {
        if (agenda.reading(path) === "pictures") return;
        agenda.setReading(path, "pictures");
        options.onChange();
      };
      return send({ ...context, yieldSlot: whileRead, onPictures, contentKind }, source, outgoing);
    },
    drop: () => {
      // It never left, so the next start need not find out what became of it.
      if (intent !== undefined) ledger.note(() => dropCreate(ledger, source, intent));
    },
  };
}

/** Records that the job of a file has ended, in whatever way. */
function endJob(parts: SourceParts, { entry }: Candidate): void {
  const { agenda, deletes } = parts;
  // Another job may have taken its place.
  if (agenda.isCurrent(entry)) agenda.end(entry);
  deletes.beginPutOff(entry.path);
  jobEnded(parts);
}

/** Returns the number of a job's source in the ledger. */
function sourceOf(job: Job): number {
  return job.kind === "file" ? job.source.id : job.deletes.source;
}

function kindOf(job: Job): JobKind {
  if (job.kind !== "file") return "delete";
  return kindOfName(basename(job.candidate.entry.path)).kind === "content" ? "text" : "document";
}

/** A PDF or an image. */
function isSentAsIs(job: Job): boolean {
  return job.kind === "file" && kindOfName(basename(job.candidate.entry.path)).kind === "file";
}
