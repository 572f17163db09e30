import PQueue from "p-queue";
import { windowAfter } from "../../plan/window.ts";
import {
  addToLine,
  BATCH_JOBS,
  hold,
  type Line,
  type Lines,
  loadOf,
  mayTake,
  takeFromLine,
} from "./lines.ts";
import { chooseNext, FIRST_TURNS, RECENT, RECENT_MAX, type Turns } from "./order.ts";

/**
 * Jobs that wait for their turn. Jobs are small and are stored in lists. Only a few at a time are prepared (read into
 * memory) and become tasks of p-queue, so that a hundred thousand files cost a list. p-queue starts them: the priority of
 * a task is its turn, and the concurrency is the width with the slots that are set apart.
 */
export type WorkQueue<Job> = ReturnType<typeof openQueue<Job>>;

/** The facts of jobs that a queue needs. */
export interface WorkQueueOptions<Job> extends Pick<Lines<Job>, "lineOf" | "bytesOf"> {
  /** Reads what the jobs need and writes their intents. The result omits what needs no sending. */
  readonly prepare: (jobs: readonly Job[]) => Promise<readonly Send<Job>[]>;
  /** Called for an unforeseen error: the work cannot continue. */
  readonly onError: (error: unknown) => void;
  readonly width: number;
  /** A monotonic clock. Default: that of the timers. */
  readonly elapsedMs?: () => number;
}

/**
 * Runs a wait that needs no slot, so that others are sent meanwhile. `wait` receives a function that returns how many
 * waits there are now for each slot of the width, at least 1.
 */
export type YieldSlot = <T>(wait: (waitsPerSlot: () => number) => Promise<T>) => Promise<T>;

/** A prepared job that may be sent. */
export interface Send<Job> {
  readonly job: Job;
  /** Bytes it occupies in memory until it is done. */
  readonly bytes: number;
  /** `isRecent`: it was pushed as recent, and has not become backlog. */
  run(yieldSlot: YieldSlot, isRecent: boolean): Promise<void>;
  /** Called instead of `run` if the job was withdrawn, or the queue was stopped before. */
  drop(): void;
}

/**
 * Jobs of a line that may wait without a slot. When so many do, the line's next ones wait for them: more would only
 * wait at the service, before what others send. When waits end, there are more jobs than the width until as many others
 * have ended. The number of connections stays the same.
 */
const YIELDED_MAX = 200;
/** Slots that the backlog leaves to recent changes, which do not wait for slow answers; at most a quarter of the width. */
const RECENT_SLOTS = 2;

/** A prepared job: a task of p-queue that waits for a slot or is in flight. */
interface Task<Job> {
  readonly line: Line<Job>;
  readonly send: Send<Job>;
  /** Removes it from p-queue, which then refers to nothing of it. */
  readonly removal: AbortController;
}

/**
 * Jobs that share slots, and how many are prepared ahead. Recent changes have slots beyond those of the backlog.
 */
interface Share<Job> {
  preparing: number;
  /** Prepared jobs that wait for a slot. */
  readonly ready: Set<Task<Job>>;
  /** Number of jobs that wait for a slot or have one. */
  needing: number;
}

interface Queue<Job> {
  readonly options: WorkQueueOptions<Job>;
  readonly tasks: PQueue;
  readonly lines: Lines<Job>;
  readonly shares: Readonly<Record<"backlog" | "recent", Share<Job>>>;
  readonly batches: Set<Promise<void>>;
  width: number;
  /** Jobs that wait without a slot. */
  waiting: number;
  turns: Turns;
  served: number;
  feeding: NodeJS.Immediate | undefined;
  isStopped: boolean;
}

/** Opens an empty queue. */
export function openQueue<Job>(options: WorkQueueOptions<Job>) {
  const { lineOf, bytesOf, width } = options;
  const share = (): Share<Job> => ({ preparing: 0, ready: new Set(), needing: 0 });
  const queue: Queue<Job> = {
    options,
    tasks: new PQueue(),
    lines: { all: [], byOwner: new Map(), arrived: 0, bytes: 0, lineOf, bytesOf },
    shares: { backlog: share(), recent: share() },
    batches: new Set(),
    width,
    waiting: 0,
    turns: FIRST_TURNS,
    served: 0,
    feeding: undefined,
    isStopped: false,
  };
  resize(queue);
  return {
    /** Adds jobs. What is not `recent` is backlog, whose small files go first. */
    push: (jobs: readonly Job[], { recent = false }: { readonly recent?: boolean } = {}): void =>
      push(queue, jobs, recent),
    /** Drops those prepared jobs that are not in flight and for which `test` is true, and returns them. */
    withdraw: (test: (job: Job) => boolean): readonly Job[] => withdraw(queue, test),
    setWidth: (next: number): void => {
      queue.width = next;
      resize(queue);
      feedSoon(queue);
    },
    /** Starts nothing more. Resolves when what was started has ended. */
    stop: async (): Promise<void> => {
      queue.isStopped = true;
      queue.tasks.pause();
      await Promise.all(queue.batches);
      withdraw(queue, () => true);
      queue.tasks.start();
      await queue.tasks.onIdle();
    },
  };
}

function push<Job>(queue: Queue<Job>, jobs: readonly Job[], recent: boolean): void {
  if (queue.isStopped) return;
  const { lines } = queue;
  const isRecent = recent && jobs.length <= RECENT_MAX;
  const ordered = isRecent ? jobs : jobs.toSorted((a, b) => lines.bytesOf(a) - lines.bytesOf(b));
  const touched = new Set(ordered.map((job) => addToLine(lines, job, isRecent)));
  for (const line of isRecent ? touched : [])
    while (line.jobs.length() > RECENT_MAX) {
      const oldest = line.jobs.shift();
      if (oldest !== undefined) addToLine(lines, oldest.job, false);
    }
  feedSoon(queue);
}

/** Batches are prepared one a turn of the loop. */
function feedSoon<Job>(queue: Queue<Job>): void {
  if (!queue.isStopped) queue.feeding ??= setImmediate(feed, queue);
}

/** Prepares a batch of the line that goes next. */
function feed<Job>(queue: Queue<Job>): void {
  queue.feeding = undefined;
  if (queue.isStopped) return;
  const contenders = queue.lines.all
    .filter((line) => roomOf(queue, line) > 0 && mayTake(queue.lines, line))
    .map((line) => ({ line, rank: line.rank, load: loadOf(line), seq: line.jobs.peek()?.seq ?? 0 }));
  const chosen = chooseNext(contenders, queue.turns, queue.served);
  if (chosen === undefined) return;
  queue.turns = chosen.turns;
  const batch = prepareBatch(queue, chosen.next.line, chosen.turn).finally(() => queue.batches.delete(batch));
  queue.batches.add(batch);
  feedSoon(queue);
}

/** Returns how many of a line's jobs may be prepared now. */
function roomOf<Job>(queue: Queue<Job>, line: Line<Job>): number {
  const { width } = queue;
  const { preparing, ready } = shareOf(queue, line);
  const ahead = preparing + ready.size;
  // A flush to a busy disk takes tens of ms, in which jobs must not run out. Larger batches need fewer flushes.
  if (ahead > width) return 0;
  // Jobs that take long are not prepared ahead of their turn.
  const ofWindow = line.window.size < width ? line.window.size - line.held : BATCH_JOBS;
  const ofWaits = line.waiting > 0 ? YIELDED_MAX - line.waiting - line.held : BATCH_JOBS;
  return Math.min(2 * width - ahead, ofWindow, ofWaits);
}

async function prepareBatch<Job>(queue: Queue<Job>, line: Line<Job>, turn: number): Promise<void> {
  const { options, lines } = queue;
  const share = shareOf(queue, line);
  const { jobs, bytes } = takeFromLine(lines, line, roomOf(queue, line));
  queue.served += jobs.length;
  hold(lines, line, jobs.length, bytes);
  share.preparing += jobs.length;
  try {
    for (const send of await options.prepare(jobs)) addTask(queue, line, send, turn);
  } catch (error) {
    options.onError(error);
  }
  hold(lines, line, -jobs.length, -bytes);
  share.preparing -= jobs.length;
  feedSoon(queue);
}

function addTask<Job>(queue: Queue<Job>, line: Line<Job>, send: Send<Job>, turn: number): void {
  const { options, tasks, lines } = queue;
  const share = shareOf(queue, line);
  const removal = new AbortController();
  const task: Task<Job> = { line, send, removal };
  const start = async (): Promise<void> => {
    share.ready.delete(task);
    await runTask(queue, task);
  };
  hold(lines, line, 1, send.bytes);
  share.ready.add(task);
  // A smaller turn goes first.
  tasks.add(start, { priority: -turn, signal: removal.signal }).catch((error: unknown) => {
    if (!removal.signal.aborted) options.onError(error);
  });
  // Not before: the backlog would take the slot.
  count(queue, line, 1);
}

async function runTask<Job>(queue: Queue<Job>, task: Task<Job>): Promise<void> {
  const { onError, elapsedMs = () => performance.now() } = queue.options;
  const { line, send } = task;
  const leftMs = elapsedMs();
  // Once the service has accepted it and processes it in its own time, its duration says nothing about a request.
  let isMeasured = false;
  const measure = (): void => {
    if (!isMeasured) line.window = windowAfter(line.window, leftMs, elapsedMs(), queue.width);
    isMeasured = true;
  };
  try {
    await send.run(async (wait) => {
      measure();
      return waitWithoutSlot(queue, line, wait);
    }, line.rank === RECENT);
  } catch (error) {
    onError(error);
  }
  measure();
  endTask(queue, task);
}

async function waitWithoutSlot<Job, T>(
  queue: Queue<Job>,
  line: Line<Job>,
  wait: (waitsPerSlot: () => number) => Promise<T>,
): Promise<T> {
  const yieldSlots = (more: number): void => {
    line.waiting += more;
    queue.waiting += more;
    hold(queue.lines, line, -more, 0);
    count(queue, line, -more);
    feedSoon(queue);
  };
  yieldSlots(1);
  try {
    return await wait(() => Math.max(1, queue.waiting / queue.width));
  } finally {
    yieldSlots(-1);
  }
}

/** Called when a job ended, or after its task was removed. */
function endTask<Job>(queue: Queue<Job>, task: Task<Job>): void {
  hold(queue.lines, task.line, -1, -task.send.bytes);
  count(queue, task.line, -1);
  feedSoon(queue);
}

function withdraw<Job>(queue: Queue<Job>, test: (job: Job) => boolean): readonly Job[] {
  const removed: Task<Job>[] = [];
  for (const { ready } of Object.values(queue.shares))
    for (const task of ready) if (test(task.send.job)) removed.push(task);
  for (const task of removed) {
    shareOf(queue, task.line).ready.delete(task);
    task.removal.abort();
  }
  for (const task of removed) {
    endTask(queue, task);
    task.send.drop();
  }
  return removed.map(({ send }) => send.job);
}

/** Counts jobs of a line that need a slot. */
function count<Job>(queue: Queue<Job>, line: Line<Job>, more: number): void {
  shareOf(queue, line).needing += more;
  resize(queue);
}

/**
 * Sets the concurrency of p-queue: the width, and one more for each job that waits without a slot. A slot of recent changes
 * exists only while one needs it. They go before the backlog, unless so many did that it is its turn.
 */
function resize<Job>({ tasks, shares, width, waiting }: Queue<Job>): void {
  const spare = Math.min(RECENT_SLOTS, Math.floor(width / 4));
  tasks.concurrency = width - spare + Math.min(spare, shares.recent.needing) + waiting;
}

function shareOf<Job>({ shares }: Queue<Job>, { rank }: Line<Job>): Share<Job> {
  return rank === RECENT ? shares.recent : shares.backlog;
}
