import { setImmediate as nextTurn } from "node:timers/promises";
import PQueue from "p-queue";
import { openFifo, type Fifo } from "../../lib/fifo.ts";
import { FIRST_WINDOW, windowAfter, type Window } from "../plan/window.ts";

/**
 * Runs a wait that needs no slot, so that others are sent meanwhile. `wait` receives a function that returns how many
 * waits there are now for each slot of the width, at least 1.
 */
export type YieldSlot = <T>(wait: (waitsPerSlot: () => number) => Promise<T>) => Promise<T>;

/** A prepared job that may be sent. */
export interface Send {
  /** Bytes it occupies in memory until it is done. */
  readonly bytes: number;
  run(yieldSlot: YieldSlot): Promise<void>;
  /** Called instead of `run` if the queue was stopped before. */
  drop(): void;
}

export interface WorkQueueOptions<Job> {
  /** Jobs of one owner and kind wait in one line; lines share the width. Values are compared as keys of a map. */
  readonly lineOf: (job: Job) => {
    readonly owner: unknown;
    readonly kind: string;
    /** Whether the line may use the reserve. */
    readonly isReserved?: boolean;
  };
  /** Slots beyond the width for reserved lines, which then do not wait for others that stand still. Default: 0. */
  readonly reserve?: number;
  /** Bytes that preparing a job may load into memory. */
  readonly bytesOf: (job: Job) => number;
  /** Reads what the jobs need and writes their intents. The result omits what needs no sending. */
  readonly prepare: (jobs: readonly Job[]) => Promise<readonly Send[]>;
  /** Called for an unforeseen error: the work cannot continue. */
  readonly onError: (error: unknown) => void;
  readonly width: number;
  /** A monotonic clock. Default: that of the timers. */
  readonly elapsedMs?: () => number;
}

/**
 * Jobs that wait for their turn. Jobs are small and are stored in lists; only a few at a time are prepared (read into
 * memory) and become tasks, so that a hundred thousand files cost a list. Of several lines with work, the one with the
 * fewest jobs in flight goes next. Jobs pushed as `last` run after all others of their owner.
 */
export interface WorkQueue<Job> {
  push(jobs: Iterable<Job>, options?: { readonly last?: boolean }): void;
  setWidth(width: number): void;
  /** Starts nothing more. Resolves when what was started has ended. */
  stop(): Promise<void>;
}

/**
 * Jobs prepared together. They share one transaction for their intents. Reading so many blocks the loop for some ms.
 */
const BATCH_JOBS = 128;
/**
 * Number of jobs of a line that are prepared ahead of those in flight. A flush to a busy disk takes tens of
 * milliseconds, during which ready jobs must not run out. Batches whose intents wait for the same flush share it.
 */
const AHEAD_JOBS = 512;
/** Bytes in memory of everything prepared or in flight. A larger file goes alone. */
const BYTES_MAX = 64 * 1024 * 1024;
/** Bytes of a batch. A line that holds nothing may use this much even if others have taken all. */
const BATCH_BYTES_MAX = BYTES_MAX / 4;
/**
 * Jobs of a line that may wait without a slot. When so many do, the line's next ones wait for them: more would only
 * wait at the service, before what others send. When waits end, there are more jobs than the width until as many others
 * have ended. The number of connections stays the same.
 */
const YIELDED_MAX = 200;

/** The jobs of one owner and kind, and their progress. */
interface Line<Job> {
  readonly owner: unknown;
  readonly isLast: boolean;
  readonly isReserved: boolean;
  readonly jobs: Fifo<Job>;
  /** Jobs that will be prepared together as soon as there is room. */
  batch: { readonly jobs: readonly Job[]; readonly need: number } | undefined;
  /** Jobs being read, or whose intents are being written to disk. */
  preparing: number;
  /** Prepared, and not yet in flight. */
  readonly ready: Fifo<Send>;
  running: number;
  /** Jobs that wait without a slot. */
  waiting: number;
  bytes: number;
  window: Window;
}

/** What the parts of a queue share. */
interface Shared<Job> {
  /** In the order in which they are prepared. */
  lines: Line<Job>[];
  /** Bytes in memory of everything prepared or in flight. */
  bytes: number;
  stopped: boolean;
  readonly waiter: Waiter;
}

/**
 * Opens an empty queue. Concurrency comes from lanes, each a task of p-queue that sends one job after another: a task
 * for every file would cost as much as writing it to the ledger.
 */
export function openQueue<Job>(options: WorkQueueOptions<Job>): WorkQueue<Job> {
  const { lineOf } = options;
  const waiter = openWaiter();
  const shared: Shared<Job> = { lines: [], bytes: 0, stopped: false, waiter };
  const lanes = openLanes(options, shared);
  const pump = openPump(options, shared, lanes.open);
  const lineBy = new Map<unknown, Map<string, Line<Job>>>();
  const lineFor = (job: Job, isLast: boolean): Line<Job> => {
    const { owner, kind, isReserved = false } = lineOf(job);
    const ofOwner = lineBy.get(owner) ?? new Map<string, Line<Job>>();
    lineBy.set(owner, ofOwner);
    const name = isLast ? "last" : kind;
    let line = ofOwner.get(name);
    if (line === undefined) {
      line = openLine(owner, isLast, isReserved);
      ofOwner.set(name, line);
      shared.lines.push(line);
    }
    return line;
  };

  return {
    push: (jobs, { last: isLast = false } = {}) => {
      if (shared.stopped) return;
      for (const job of jobs) lineFor(job, isLast).jobs.push(job);
      pump.ensure();
      waiter.wake();
    },
    setWidth: lanes.setWidth,
    stop: async () => {
      shared.stopped = true;
      waiter.wake();
      await pump.ended();
      await waiter.until(() => shared.lines.every(({ preparing }) => preparing === 0));
      lanes.open();
      // Ready jobs that have not started pass through and do nothing.
      await lanes.idle();
    },
  };
}

interface Waiter {
  /** Resolves when the condition holds. Only the pump waits here, and `stop` after the pump has ended. */
  readonly until: (isOver: () => boolean) => Promise<void>;
  /** Checks the condition again. */
  readonly wake: () => void;
}

function openWaiter(): Waiter {
  let waiter: { readonly isOver: () => boolean; readonly resolve: () => void } | undefined;
  return {
    until: async (isOver) => {
      if (isOver()) return;
      const { promise, resolve } = Promise.withResolvers<void>();
      waiter = { isOver, resolve };
      await promise;
    },
    wake: () => {
      if (waiter === undefined || !waiter.isOver()) return;
      waiter.resolve();
      waiter = undefined;
    },
  };
}

/** Prepares batches of jobs while there is room. `onReady` is called after each. */
function openPump<Job>(
  { bytesOf, prepare, onError }: WorkQueueOptions<Job>,
  shared: Shared<Job>,
  onReady: () => void,
): { ensure: () => void; ended: () => Promise<void> } {
  const { waiter } = shared;
  let pump: Promise<void> | undefined;

  const mayPrepare = (line: Line<Job>): boolean => {
    if (!hasJobs(line) || line.preparing + line.ready.length() >= AHEAD_JOBS) return false;
    if (
      line.isLast &&
      shared.lines.some((other) => other.owner === line.owner && !other.isLast && hasJobs(other))
    )
      return false;
    return hasRoom(shared.bytes, line, fillBatch(line, bytesOf).need);
  };
  const prepareBatch = async (line: Line<Job>): Promise<void> => {
    const { jobs, need } = fillBatch(line, bytesOf);
    line.batch = undefined;
    const hold = (more: number): void => {
      shared.bytes += more;
      line.bytes += more;
    };
    line.preparing += jobs.length;
    hold(need);
    try {
      for (const send of await prepare(jobs)) {
        hold(send.bytes);
        line.ready.push(send);
      }
    } catch (error) {
      onError(error);
    }
    line.preparing -= jobs.length;
    hold(-need);
    onReady();
    waiter.wake();
  };
  const waits = (): boolean => !shared.stopped && shared.lines.some(hasJobs);
  const work = async (): Promise<void> => {
    while (waits()) {
      await waiter.until(() => shared.stopped || shared.lines.some(mayPrepare));
      const line = shared.lines.find(mayPrepare);
      if (shared.stopped || line === undefined) break;
      // The others have their turns first.
      shared.lines = [...shared.lines.filter((each) => each !== line), line];
      void prepareBatch(line);
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
  return { ensure: ensureWork, ended: () => pump ?? Promise.resolve() };
}

function hasJobs<Job>({ jobs, batch }: Line<Job>): boolean {
  return batch !== undefined || jobs.length() > 0;
}

/** Takes the line's next batch from its jobs, unless it has one. */
function fillBatch<Job>(line: Line<Job>, bytesOf: (job: Job) => number): NonNullable<Line<Job>["batch"]> {
  if (line.batch !== undefined) return line.batch;
  const jobs: Job[] = [];
  let need = 0;
  while (jobs.length < BATCH_JOBS) {
    const next = line.jobs.peek();
    if (next === undefined || (jobs.length > 0 && need + bytesOf(next) > BATCH_BYTES_MAX)) break;
    need += bytesOf(next);
    jobs.push(next);
    line.jobs.shift();
  }
  line.batch = { jobs, need };
  return line.batch;
}

/** Reports whether a batch of `need` bytes fits. */
function hasRoom(bytes: number, line: Pick<Line<unknown>, "bytes">, need: number): boolean {
  return (
    bytes === 0 ||
    bytes + need <= BYTES_MAX ||
    (line.bytes === 0 && need <= BATCH_BYTES_MAX && bytes + need <= BYTES_MAX + BATCH_BYTES_MAX)
  );
}

/** Sends what is ready. */
interface Lanes {
  /** Opens as many lanes as there is work for and the width allows. */
  readonly open: () => void;
  readonly setWidth: (width: number) => void;
  /** Resolves when all lanes have ended. */
  readonly idle: () => Promise<void>;
}

function openLanes<Job>(
  { onError, width: widthBefore, reserve = 0, elapsedMs = () => performance.now() }: WorkQueueOptions<Job>,
  shared: Shared<Job>,
): Lanes {
  const { waiter } = shared;
  let width = widthBefore;
  const lanes = new PQueue({ concurrency: width + reserve });
  /** Lanes that were added and have not ended. */
  let lanesOpen = 0;
  /** Jobs that wait without a slot. */
  let waiting = 0;

  const runOrDrop = async (line: Line<Job>, send: Send): Promise<void> => {
    if (shared.stopped) {
      send.drop();
      return;
    }
    const leftMs = elapsedMs();
    // The service accepted it and processes it in its own time, so its duration says nothing about a request.
    let hasYielded = false;
    line.running += 1;
    try {
      await send.run(async (wait) => {
        hasYielded = true;
        return yieldSlot(line, wait);
      });
    } finally {
      if (!hasYielded) line.window = windowAfter(line.window, leftMs, elapsedMs(), width);
      line.running -= 1;
    }
  };
  /** Whether a line without reserve may send. */
  const mayUseWidth = (): boolean =>
    reserve === 0 ||
    shared.stopped ||
    shared.lines.reduce((sum, one) => sum + (one.isReserved ? 0 : one.running), 0) < width;
  /** False while there are more lanes than the width allows. Dropping the rest needs no limit. */
  const mayGoOn = (): boolean => shared.stopped || lanesOpen <= lanes.concurrency;
  /** Sends until nothing may leave. */
  const lane = async (): Promise<void> => {
    while (mayGoOn()) {
      const line = nextLine(shared, mayUseWidth());
      const send = line?.ready.shift();
      if (line === undefined || send === undefined) break;
      waiter.wake();
      try {
        await runOrDrop(line, send);
      } catch (error) {
        onError(error);
      }
      shared.bytes -= send.bytes;
      line.bytes -= send.bytes;
      waiter.wake();
      open();
    }
    lanesOpen -= 1;
  };
  const open = (): void => {
    if (lanesOpen >= lanes.concurrency) return;
    let wanted = lanesOpen;
    const mayAll = mayUseWidth();
    for (const line of shared.lines) if (mayAll || line.isReserved) wanted += mayLeave(line, shared.stopped);
    for (wanted = Math.min(lanes.concurrency, wanted); lanesOpen < wanted; lanesOpen++)
      lanes.add(lane).catch(onError);
  };
  const setConcurrency = (): void => {
    lanes.concurrency = width + reserve + waiting;
    open();
  };
  const yieldSlot = async <T>(
    line: Line<Job>,
    wait: (waitsPerSlot: () => number) => Promise<T>,
  ): Promise<T> => {
    const count = (more: number): void => {
      line.running -= more;
      line.waiting += more;
      waiting += more;
      setConcurrency();
    };
    count(1);
    try {
      return await wait(() => Math.max(1, waiting / width));
    } finally {
      count(-1);
    }
  };
  return {
    open,
    setWidth: (next) => {
      width = next;
      setConcurrency();
    },
    idle: () => lanes.onIdle(),
  };
}

/** Returns how many more jobs of a line may leave; all, to drop the rest. */
function mayLeave(
  { ready, running, waiting, window }: Pick<Line<unknown>, "ready" | "running" | "waiting" | "window">,
  stopped: boolean,
): number {
  if (stopped) return ready.length();
  return waiting >= YIELDED_MAX ? 0 : Math.max(0, Math.min(ready.length(), window.size - running));
}

/** Returns the line with the fewest jobs in flight of those that may send; `all`: not only those with a reserve. */
function nextLine<Job>({ lines, stopped }: Shared<Job>, all: boolean): Line<Job> | undefined {
  let next: Line<Job> | undefined;
  for (const line of lines) {
    if (!all && !line.isReserved) continue;
    if ((next === undefined || line.running < next.running) && mayLeave(line, stopped) > 0) next = line;
  }
  return next;
}

function openLine<Job>(owner: unknown, isLast: boolean, isReserved: boolean): Line<Job> {
  return {
    owner,
    isLast,
    isReserved,
    jobs: openFifo<Job>(),
    batch: undefined,
    preparing: 0,
    ready: openFifo<Send>(),
    running: 0,
    waiting: 0,
    bytes: 0,
    window: FIRST_WINDOW,
  };
}
