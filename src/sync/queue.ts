import PQueue from "p-queue";

/** A piece of work that was prepared and may be sent. */
export interface Send {
  /** Bytes it holds in memory until it is done. */
  readonly bytes: number;
  run(): Promise<void>;
  /** Called instead of `run` when the queue was stopped before. */
  drop(): void;
}

export interface WorkQueueOptions<Job> {
  /** Bytes that preparing a job may bring into memory. */
  readonly bytesOf: (job: Job) => number;
  /** Reads what the jobs need and writes their intents. What needs no sending is left out of the result. */
  readonly prepare: (jobs: readonly Job[]) => Promise<readonly Send[]>;
  /** An error that nobody foresaw: the work cannot go on. */
  readonly onError: (error: unknown) => void;
  readonly width: number;
}

/**
 * Work waiting for its turn. Jobs are small and lie in a list; only a few at a time are prepared (read into memory)
 * and become tasks, so that a hundred thousand files cost a list. Jobs pushed as `last` run after all others.
 */
export interface WorkQueue<Job> {
  push(jobs: Iterable<Job>, options?: { readonly last?: boolean }): void;
  setWidth(width: number): void;
  /** Starts nothing more; resolves when what was started has ended. */
  stop(): Promise<void>;
}

/** Jobs prepared together: they share one transaction for their intents. Reading so many holds the loop for some ms. */
const BATCH_JOBS = 128;
/** Bytes in memory of all that is prepared or on its way; one larger file goes alone. */
const BYTES_MAX = 64 * 1024 * 1024;

/** Opens an empty queue. */
export function openQueue<Job>({ bytesOf, prepare, onError, width }: WorkQueueOptions<Job>): WorkQueue<Job> {
  const tasks = new PQueue({ concurrency: width });
  const first = fifo<Job>();
  const last = fifo<Job>();
  let bytes = 0;
  let stopped = false;
  let pump: Promise<void> | undefined;
  let roomWaiters: (() => void)[] = [];

  const release = (count: number): void => {
    bytes -= count;
    const waiters = roomWaiters;
    roomWaiters = [];
    for (const resolve of waiters) resolve();
  };
  const takeBatch = (): { jobs: Job[]; need: number } => {
    const jobs: Job[] = [];
    let need = 0;
    while (jobs.length < BATCH_JOBS) {
      const from = first.length() > 0 ? first : last;
      const next = from.peek();
      if (next === undefined || (jobs.length > 0 && need + bytesOf(next) > BYTES_MAX / 4)) break;
      need += bytesOf(next);
      jobs.push(next);
      from.shift();
    }
    return { jobs, need };
  };
  const start = (send: Send): void => {
    bytes += send.bytes;
    tasks
      .add(async () => {
        if (stopped) send.drop();
        else await send.run();
      })
      .catch(onError)
      .finally(() => {
        release(send.bytes);
      });
  };
  const waits = (): boolean => !stopped && first.length() + last.length() > 0;
  const isFull = (need: number): boolean => !stopped && bytes > 0 && bytes + need > BYTES_MAX;
  const work = async (): Promise<void> => {
    while (waits()) {
      await tasks.onSizeLessThan(BATCH_JOBS / 2);
      const { jobs, need } = takeBatch();
      while (isFull(need)) {
        await new Promise<void>((resolve) => {
          roomWaiters.push(resolve);
        });
      }
      if (stopped) break;
      const sends = await prepare(jobs);
      for (const send of sends) start(send);
    }
  };
  const ensureWork = (): void => {
    pump ??= work()
      .catch(onError)
      .finally(() => {
        pump = undefined;
        if (waits()) ensureWork();
      });
  };

  return {
    push: (jobs, { last: goesLast = false } = {}) => {
      if (stopped) return;
      for (const job of jobs) (goesLast ? last : first).push(job);
      ensureWork();
    },
    setWidth: (next) => {
      tasks.concurrency = next;
    },
    stop: async () => {
      stopped = true;
      release(0);
      await pump;
      // Tasks not yet begun pass through without doing anything.
      await tasks.onIdle();
    },
  };
}

interface Fifo<T> {
  push(item: T): void;
  peek(): T | undefined;
  shift(): void;
  length(): number;
}

/** A list whose head leaves in constant time; `Array.shift` would move a hundred thousand items each time. */
function fifo<T>(): Fifo<T> {
  let items: T[] = [];
  let head = 0;
  return {
    push: (item) => {
      items.push(item);
    },
    peek: () => items[head],
    shift: () => {
      head += 1;
      if (head < 1024 || head * 2 < items.length) return;
      items = items.slice(head);
      head = 0;
    },
    length: () => items.length - head,
  };
}
