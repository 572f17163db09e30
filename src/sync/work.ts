import type { Prepared } from "./actions/prepare.ts";
import type { Ledger } from "./ledger/ledger.ts";
import { openQueue, type Send, type WorkQueue } from "./queue.ts";
import type { Job } from "./source.ts";

/** Of the work found so far in this run. */
export interface Progress {
  readonly done: number;
  readonly total: number;
  /** Of those done, the ones for which something was sent: a file that was only touched is looked at, no more. */
  readonly sent: number;
  /** Bytes of the files done. */
  readonly bytes: number;
}

/** The daemon's queue: jobs of all sources, read and written down together, then sent side by side. */
export interface Work extends Pick<WorkQueue<Job>, "push" | "setWidth" | "stop"> {
  progress(): Progress;
}

export interface WorkOptions {
  readonly ledger: Ledger;
  readonly width: number;
  readonly onError: (error: unknown) => void;
  /** Nothing more can be done; jobs only pass through. */
  readonly isBroken: () => boolean;
}

/** Opens the queue. */
export function openWork({ ledger, width, onError, isBroken }: WorkOptions): Work {
  let done = 0;
  let total = 0;
  let sent = 0;
  let bytes = 0;

  const finish = (job: Job): void => {
    done += 1;
    if (job.kind === "look") bytes += job.look.entry.sizeBytes;
    job.source.done(job);
  };
  const sendOf = (job: Job, bytesHeld: number, run: () => Promise<void>, drop?: () => void): Send => ({
    bytes: bytesHeld,
    run: async () => {
      // A job that threw is not done: the work cannot go on, and status still counts its file as waiting.
      await run();
      sent += 1;
      finish(job);
    },
    drop: () => drop?.(),
  });
  type LookJob = Extract<Job, { kind: "look" }>;
  const prepareOf = async (job: Job): Promise<Prepared | undefined> =>
    job.kind === "look" && !isBroken() ? job.source.prepare(job.look) : undefined;

  const queue = openQueue<Job>({
    width,
    onError,
    bytesOf: (job) => (job.kind === "look" ? job.look.entry.sizeBytes : 0),
    prepare: async (jobs) => {
      const prepared = await Promise.all(jobs.map(prepareOf));
      const sends: Send[] = [];
      const ready: { readonly job: LookJob; readonly work: Prepared }[] = [];
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
      const list = [...jobs];
      total += list.length;
      queue.push(list, how);
    },
    progress: () => ({ done, total, sent, bytes }),
  };
}
