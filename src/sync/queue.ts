import { setImmediate as nextTurn } from "node:timers/promises";
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
  /**
   * Called by a piece of work that only waits: as long as `wait` runs, others are sent in its place. `wait` is told how many
   * wait so at the moment for each piece of work that the width allows, at least 1.
   */
  aside<T>(wait: (crowd: () => number) => Promise<T>): Promise<T>;
  /** Starts nothing more; resolves when what was started has ended. */
  stop(): Promise<void>;
}

/** Jobs prepared together: they share one transaction for their intents. Reading so many holds the loop for some ms. */
const BATCH_JOBS = 128;
/**
 * So many are prepared ahead of those on their way. A flush to a busy disk takes tens of milliseconds, in which what is
 * ready must not run out; batches whose intents wait for the same flush share it.
 */
const AHEAD_JOBS = 512;
/** Bytes in memory of all that is prepared or on its way; one larger file goes alone. */
const BYTES_MAX = 64 * 1024 * 1024;
/**
 * Pieces of work in whose place others are sent, some kilobytes each: more that wait keep their own places. When they come
 * back they are more than the width until as many others have ended; their connections are no more for that.
 */
const ASIDE_MAX = 1000;

/**
 * Opens an empty queue. What runs side by side are lanes, each a task of p-queue that sends one piece of work after
 * another: a task of its own for every file would cost as much as writing it to the ledger.
 */
export function openQueue<Job>(options: WorkQueueOptions<Job>): WorkQueue<Job> {
  const { bytesOf, prepare, onError } = options;
  let { width } = options;
  const lanes = new PQueue({ concurrency: width });
  const first = fifo<Job>();
  const last = fifo<Job>();
  /** Prepared, and not yet on its way. */
  const ready = fifo<Send>();
  /** Lanes that were added and have not left. */
  let lanesOpen = 0;
  /** Pieces of work that only wait. */
  let waiting = 0;
  /** Jobs being read, or whose intents are on their way to the disk. */
  let preparing = 0;
  let bytes = 0;
  let stopped = false;
  let pump: Promise<void> | undefined;
  let waiter: { readonly isOver: () => boolean; readonly resolve: () => void } | undefined;

  /** Resolves when the condition holds; the pump alone waits here, and who stops it once it has ended. */
  const until = async (isOver: () => boolean): Promise<void> => {
    if (isOver()) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    waiter = { isOver, resolve };
    await promise;
  };
  const wake = (): void => {
    if (waiter === undefined || !waiter.isOver()) return;
    waiter.resolve();
    waiter = undefined;
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
  const runOrDrop = async (send: Send): Promise<void> => {
    try {
      if (stopped) send.drop();
      else await send.run();
    } catch (error) {
      onError(error);
    }
  };
  /** Not while there are more lanes than the width allows; to drop what is left, any will do. */
  const mayGoOn = (): boolean => stopped || lanesOpen <= lanes.concurrency;
  /** Sends until nothing is ready. */
  const lane = async (): Promise<void> => {
    while (mayGoOn()) {
      const send = ready.shift();
      if (send === undefined) break;
      wake();
      await runOrDrop(send);
      bytes -= send.bytes;
      wake();
    }
    lanesOpen -= 1;
  };
  const openLanes = (): void => {
    const wanted = Math.min(lanes.concurrency, lanesOpen + ready.length());
    for (; lanesOpen < wanted; lanesOpen++) lanes.add(lane).catch(onError);
  };
  const setConcurrency = (): void => {
    lanes.concurrency = width + Math.min(waiting, ASIDE_MAX);
    openLanes();
  };
  const waits = (): boolean => !stopped && first.length() + last.length() > 0;
  const hasRoom = (need: number): boolean => stopped || bytes === 0 || bytes + need <= BYTES_MAX;
  const prepareBatch = async (jobs: readonly Job[], need: number): Promise<void> => {
    preparing += jobs.length;
    bytes += need;
    try {
      for (const send of await prepare(jobs)) {
        bytes += send.bytes;
        ready.push(send);
      }
    } catch (error) {
      onError(error);
    }
    preparing -= jobs.length;
    bytes -= need;
    openLanes();
    wake();
  };
  const work = async (): Promise<void> => {
    while (waits()) {
      await until(() => stopped || preparing + ready.length() < AHEAD_JOBS);
      const { jobs, need } = takeBatch();
      await until(() => hasRoom(need));
      if (stopped) break;
      void prepareBatch(jobs, need);
      await nextTurn();
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
      width = next;
      setConcurrency();
    },
    aside: async (wait) => {
      waiting += 1;
      setConcurrency();
      try {
        return await wait(() => Math.max(1, waiting / width));
      } finally {
        waiting -= 1;
        setConcurrency();
      }
    },
    stop: async () => {
      stopped = true;
      wake();
      await pump;
      await until(() => preparing === 0);
      openLanes();
      // What is ready and has not begun passes through without doing anything.
      await lanes.onIdle();
    },
  };
}

interface Fifo<T> {
  push(item: T): void;
  peek(): T | undefined;
  shift(): T | undefined;
  length(): number;
}

/** A list whose head leaves in constant time; `Array.shift` would move a hundred thousand items each time. */
function fifo<T>(): Fifo<T> {
  let items: (T | undefined)[] = [];
  let head = 0;
  return {
    push: (item) => {
      items.push(item);
    },
    peek: () => items[head],
    shift: () => {
      const item = items[head];
      if (head === items.length) return undefined;
      items[head] = undefined; // What has left must not be kept in memory.
      head += 1;
      if (head < 1024 || head * 2 < items.length) return item;
      items = items.slice(head);
      head = 0;
      return item;
    },
    length: () => items.length - head,
  };
}
