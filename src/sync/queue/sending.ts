import PQueue from "p-queue";
import { windowAfter } from "../plan/window.ts";
import type { Line, Lines, Share } from "./lines.ts";
import { RECENT } from "./order.ts";

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

/** Slots that the backlog leaves to recent changes, which do not wait for slow answers; at most a quarter of the width. */
const RECENT_SLOTS = 2;
/** The tasks of p-queue: prepared jobs that wait for a slot or are in flight. */
interface Sending<Job> {
  /** Adds a prepared job. A smaller turn goes first. */
  add(line: Line<Job>, send: Send<Job>, turn: number): void;
  /** Returns the number of jobs that wait for a slot. */
  ready(share: Share): number;
  /** Drops those that wait for a slot and for which `test` is true, and returns them. */
  withdraw(this: void, test: (job: Job) => boolean): readonly Job[];
  setWidth(this: void, width: number): void;
  /** Starts nothing more. When no more is added, drops what waits for a slot, and resolves when nothing is in flight. */
  stop(added: Promise<unknown>): Promise<void>;
}

interface Ready<Job> {
  readonly line: Line<Job>;
  readonly send: Send<Job>;
  readonly turn: number;
  /** Name of its task. */
  readonly id: string;
  /** Removes its task. */
  readonly removal: AbortController;
}

/** Priority of deletes in the reserve. That of all others is their negative turn. */
const NEXT = 1;

/** Opens a queue without tasks. `onEnd` is called when jobs end, and when one needs no slot any more. */
export function openSending<Job>(
  options: {
    readonly width: number;
    readonly reserve?: number;
    readonly onError: (error: unknown) => void;
    readonly elapsedMs?: () => number;
  },
  lines: Pick<Lines<Job>, "hold">,
  onEnd: () => void,
): Sending<Job> {
  const { onError, elapsedMs = () => performance.now() } = options;
  const tasks = new PQueue();
  const slots = openSlots(tasks, options);
  const ready = openReady<Job>(tasks, options);

  const release = (ended: Ready<Job>): void => {
    const { line, send } = ended;
    lines.hold(line, -1, -send.bytes);
    ready.end(ended);
    slots.count(line.share, -1);
    onEnd();
  };
  const yieldSlot = async <T>(
    line: Line<Job>,
    wait: (waitsPerSlot: () => number) => Promise<T>,
  ): Promise<T> => {
    const count = (more: number): void => {
      line.waiting += more;
      lines.hold(line, -more, 0);
      slots.count(line.share, -more, more);
      onEnd();
    };
    count(1);
    try {
      return await wait(slots.waitsPerSlot);
    } finally {
      count(-1);
    }
  };
  const run = async (started: Ready<Job>): Promise<void> => {
    const { line, send } = started;
    const leftMs = elapsedMs();
    // The service accepted it and processes it in its own time, so its duration says nothing about a request.
    let hasYielded = false;
    try {
      await send.run(async (wait) => {
        hasYielded = true;
        return yieldSlot(line, wait);
      }, line.rank === RECENT);
    } catch (error) {
      onError(error);
    }
    if (!hasYielded) line.window = windowAfter(line.window, leftMs, elapsedMs(), slots.width());
    release(started);
  };
  const withdraw = (test: (job: Job) => boolean): readonly Job[] => {
    const removed = ready.remove(test);
    for (const each of removed) {
      release(each);
      each.send.drop();
    }
    return removed.map(({ send }) => send.job);
  };

  return {
    add: (line, send, turn) => {
      lines.hold(line, 1, send.bytes);
      ready.add(line, send, turn, run);
      // Not before: the backlog would take the slot.
      slots.count(line.share, 1);
    },
    ready: ready.count,
    withdraw,
    setWidth: slots.setWidth,
    stop: async (added) => {
      tasks.pause();
      await added;
      withdraw(() => true);
      tasks.start();
      await tasks.onIdle();
    },
  };
}

/** Opens the tasks that wait for a slot. While fewer deletes than `reserve` are in flight, deletes go before all other jobs. */
function openReady<Job>(
  tasks: PQueue,
  { reserve = 0, onError }: { readonly reserve?: number; readonly onError: (error: unknown) => void },
): {
  count(this: void, share: Share): number;
  /** Adds a task that calls `run`. */
  add(line: Line<Job>, send: Send<Job>, turn: number, run: (started: Ready<Job>) => Promise<void>): void;
  /** Removes the tasks for whose jobs `test` is true, and returns them. P-queue then refers to nothing of them. */
  remove(test: (job: Job) => boolean): readonly Ready<Job>[];
  /** Called when a job ended, or after its task was removed. */
  end(ended: Ready<Job>): void;
} {
  const ready: Readonly<Record<Share, Set<Ready<Job>>>> = {
    backlog: new Set(),
    recent: new Set(),
    delete: new Set(),
    recentDelete: new Set(),
  };
  /** Deletes that go next or are in flight. */
  const ahead = new Set<Ready<Job>>();
  let lastId = 0;
  const fillReserve = (): void => {
    if (ahead.size >= reserve) return;
    const waiting = [...ready.delete, ...ready.recentDelete].filter((each) => !ahead.has(each));
    for (const each of waiting.toSorted((a, b) => a.turn - b.turn).slice(0, reserve - ahead.size)) {
      ahead.add(each);
      tasks.setPriority(each.id, NEXT);
    }
  };
  return {
    count: (share) => ready[share].size,
    add: (line, send, turn, run) => {
      const removal = new AbortController();
      const added = { line, send, turn, id: String((lastId += 1)), removal };
      const start = (): Promise<void> => {
        ready[line.share].delete(added);
        if (line.kind === "delete") ahead.add(added);
        return run(added);
      };
      ready[line.share].add(added);
      tasks.add(start, { priority: -turn, id: added.id, signal: removal.signal }).catch((error: unknown) => {
        if (!removal.signal.aborted) onError(error);
      });
      fillReserve();
    },
    remove: (test) => {
      const removed = Object.values(ready).flatMap((each) => [...each].filter(({ send }) => test(send.job)));
      for (const each of removed) {
        ready[each.line.share].delete(each);
        each.removal.abort();
      }
      return removed;
    },
    end: (ended) => {
      if (ahead.delete(ended)) fillReserve();
    },
  };
}

/** Keeps the concurrency of p-queue: the width, and one more for each job that waits without a slot. */
function openSlots(
  tasks: PQueue,
  { width: first, reserve = 0 }: { readonly width: number; readonly reserve?: number },
): {
  width(): number;
  setWidth(this: void, width: number): void;
  /** Counts jobs that need a slot, and those that wait without one. */
  count(share: Share, needing: number, waiting?: number): void;
  waitsPerSlot(this: void): number;
} {
  let width = first;
  let waiting = 0;
  const needing = { backlog: 0, recent: 0, delete: 0, recentDelete: 0 };
  /**
   * A slot of recent changes or of deletes exists only while one needs it. They go before the backlog, unless so many did
   * that it is its turn.
   */
  const resize = (): void => {
    const spare = Math.min(RECENT_SLOTS, Math.floor(width / 4));
    const deletes = needing.delete + needing.recentDelete;
    const apart = Math.min(spare, needing.recent) + Math.min(reserve, deletes);
    tasks.concurrency = width - spare + apart + waiting;
  };
  resize();
  return {
    width: () => width,
    setWidth: (next) => {
      width = next;
      resize();
    },
    count: (share, more, moreWaiting = 0) => {
      needing[share] += more;
      waiting += moreWaiting;
      resize();
    },
    waitsPerSlot: () => Math.max(1, waiting / width),
  };
}
