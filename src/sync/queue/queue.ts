import { BATCH_JOBS, type Line, openLines } from "./lines.ts";
import { chooseNext, FIRST_TURNS, type JobKind, RECENT_MAX } from "./order.ts";
import { openSending, type Send } from "./sending.ts";

/**
 * Jobs that wait for their turn. Jobs are small and are stored in lists. Only a few at a time are prepared (read into
 * memory) and become tasks of p-queue, so that a hundred thousand files cost a list. p-queue starts them: the priority of
 * a task is its turn, and the concurrency is the width with the slots that are set apart.
 */
export interface WorkQueue<Job> {
  /** Adds jobs. What is not `recent` is backlog, whose small files go first. */
  push(jobs: readonly Job[], options?: { readonly recent?: boolean }): void;
  /** Drops those prepared jobs that are not in flight and for which `test` is true, and returns them. */
  withdraw(test: (job: Job) => boolean): readonly Job[];
  setWidth(width: number): void;
  /** Starts nothing more. Resolves when what was started has ended. */
  stop(): Promise<void>;
}

/** The facts of jobs that a queue needs. */
export interface WorkQueueOptions<Job> {
  /** Owners share the width. Values are compared as keys of a map. */
  readonly lineOf: (job: Job) => { readonly owner: unknown; readonly kind: JobKind };
  /** Slots beyond the width for deletes, which then do not wait for blocked files. Default: 0. */
  readonly reserve?: number;
  /** Bytes that preparing a job may load into memory. */
  readonly bytesOf: (job: Job) => number;
  /** Reads what the jobs need and writes their intents. The result omits what needs no sending. */
  readonly prepare: (jobs: readonly Job[]) => Promise<readonly Send<Job>[]>;
  /** Called for an unforeseen error: the work cannot continue. */
  readonly onError: (error: unknown) => void;
  readonly width: number;
  /** A monotonic clock. Default: that of the timers. */
  readonly elapsedMs?: () => number;
}

/**
 * Jobs of a line that may wait without a slot. When so many do, the line's next ones wait for them: more would only
 * wait at the service, before what others send. When waits end, there are more jobs than the width until as many others
 * have ended. The number of connections stays the same.
 */
const YIELDED_MAX = 200;

/** Opens an empty queue. */
export function openQueue<Job>(options: WorkQueueOptions<Job>): WorkQueue<Job> {
  const { bytesOf, onError } = options;
  let { width } = options;
  const lines = openLines(options);
  const sending = openSending(options, lines, () => feedSoon());
  const preparing = { backlog: 0, recent: 0, delete: 0, recentDelete: 0 };
  const batches = new Set<Promise<void>>();
  let turns = FIRST_TURNS;
  let served = 0;
  let feeding: NodeJS.Immediate | undefined;
  let isStopped = false;

  /** Returns how many of a line's jobs may be prepared now. */
  const roomOf = (line: Line<Job>): number => {
    const ahead = preparing[line.share] + sending.ready(line.share);
    // A flush to a busy disk takes tens of ms, in which jobs must not run out. Larger batches need fewer flushes.
    if (ahead > width) return 0;
    // Jobs that take long are not prepared ahead of their turn.
    const ofWindow = line.window.size < width ? line.window.size - line.held : BATCH_JOBS;
    const ofWaits = line.waiting > 0 ? YIELDED_MAX - line.waiting - line.held : BATCH_JOBS;
    return Math.min(2 * width - ahead, ofWindow, ofWaits);
  };
  const feed = (): void => {
    feeding = undefined;
    if (isStopped) return;
    const contenders = lines.all
      .filter((line) => roomOf(line) > 0 && lines.mayTake(line))
      .map((line) => ({ line, rank: line.rank, load: line.load.held, seq: line.jobs.peek()?.seq ?? 0 }));
    const chosen = chooseNext(contenders, turns, served);
    if (chosen === undefined) return;
    ({ turns } = chosen);
    const batch = prepareBatch(chosen.next.line, chosen.turn).finally(() => batches.delete(batch));
    batches.add(batch);
    feedSoon();
  };
  /** Batches are prepared one a turn of the loop. */
  const feedSoon = (): void => {
    if (!isStopped) feeding ??= setImmediate(feed);
  };
  const prepareBatch = async (line: Line<Job>, turn: number): Promise<void> => {
    const { jobs, bytes } = lines.take(line, roomOf(line));
    served += jobs.length;
    lines.hold(line, jobs.length, bytes);
    preparing[line.share] += jobs.length;
    try {
      for (const send of await options.prepare(jobs)) sending.add(line, send, turn);
    } catch (error) {
      onError(error);
    }
    lines.hold(line, -jobs.length, -bytes);
    preparing[line.share] -= jobs.length;
    feedSoon();
  };

  return {
    push: (jobs, { recent = false } = {}) => {
      if (isStopped) return;
      const isRecent = recent && jobs.length <= RECENT_MAX;
      const ordered = isRecent ? jobs : jobs.toSorted((a, b) => bytesOf(a) - bytesOf(b));
      const touched = new Set(ordered.map((job) => lines.add(job, isRecent)));
      for (const line of isRecent ? touched : [])
        while (line.jobs.length() > RECENT_MAX) {
          const oldest = line.jobs.shift();
          if (oldest !== undefined) lines.add(oldest.job, false);
        }
      feedSoon();
    },
    withdraw: sending.withdraw,
    setWidth: (next) => {
      width = next;
      sending.setWidth(next);
      feedSoon();
    },
    stop: async () => {
      isStopped = true;
      await sending.stop(Promise.all(batches));
    },
  };
}
