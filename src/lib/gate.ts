import { openFairLine } from "./fair-line.ts";

/** Limits concurrent work: at most `width` weight runs at once, at most `lineMax` tasks wait. */
export interface Gate {
  /**
   * Runs the work once a slot is free. Throws the error of `full` if the queue is full, and the signal's reason if it is
   * aborted while the work waits. In both cases the work has not started.
   */
  run<T>(work: () => Promise<T>, options?: WorkOptions): Promise<T>;
  /** Total weight of running tasks. */
  running(): number;
  waiting(): number;
}

export interface GateOptions {
  readonly width: number;
  readonly lineMax: number;
  /** Tasks that may wait under one first part of a path. Default: `lineMax`. */
  readonly shareMax?: number;
  /**
   * Extra slots beyond `width`, only for a first part of a path under which nothing runs. So no account waits for the end
   * of another's long work. Default 0.
   */
  readonly guests?: number;
  /** Creates the error for a task that finds the queue full. */
  readonly full: () => Error;
  /** Default: a monotonic clock. */
  readonly nowMs?: () => number;
}

export interface WorkOptions {
  readonly signal?: AbortSignal | undefined;
  /** Default 1. A task heavier than `width` runs alone. */
  readonly weight?: number;
  /** Wraps the wait for a slot, if the task has to wait. Default: plain wait. */
  readonly whileWaiting?: (<T>(wait: () => Promise<T>) => Promise<T>) | undefined;
  /** Tenant of the work, such as account and owner; time is shared equally among tenants. Default: none. */
  readonly path?: readonly string[] | undefined;
  /** Rank of the work within its path (`FairLine`). Default 0. */
  readonly rank?: number | undefined;
}

type Slot = "regular" | "guest";

interface Task {
  readonly path: readonly string[];
  readonly weight: number;
}

interface Waiter extends Task {
  readonly enter: () => void;
}

/** Opens a gate that is fair among paths, and goes by rank within one path (`openFairLine`). */
export function openGate({
  width,
  lineMax,
  shareMax = lineMax,
  guests = 0,
  full,
  nowMs = () => performance.now(),
}: GateOptions): Gate {
  const line = openFairLine<Waiter>();
  const slots = openSlots(width, guests);
  /** Slots of the admitted tasks that had to wait. */
  const admitted = new WeakMap<Waiter, Slot>();

  const admit = (): void => {
    for (;;) {
      const isFree = slots.fits(line.peek()?.weight ?? 0);
      // A light task never overtakes a heavy one, which could starve. A guest takes no regular slot.
      const accept = isFree ? undefined : slots.isIdle;
      const next = line.peek(accept);
      const slot = next && slots.find(next);
      if (next === undefined || slot === undefined) break;
      line.shift(accept);
      // Counted before the task wakes, so that no other task takes its slot.
      slots.take(next, slot);
      admitted.set(next, slot);
      next.enter();
    }
  };

  const leave = (task: Task, slot: Slot): void => {
    slots.free(task, slot);
    admit();
  };

  const enter = async (
    task: Task,
    { signal, rank, whileWaiting = (wait) => wait() }: Pick<WorkOptions, "signal" | "rank" | "whileWaiting">,
  ): Promise<Slot> => {
    const { path } = task;
    signal?.throwIfAborted();
    const slot = line.waiting() === 0 ? slots.find(task) : undefined;
    if (slot !== undefined) {
      slots.take(task, slot);
      return slot;
    }
    if (line.waiting() >= lineMax || line.waitingAt(path.slice(0, 1)) >= shareMax) throw full();
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const waiter: Waiter = { ...task, enter: resolve };
    const giveUp = (): void => {
      // An admitted task is running and leaves at its end.
      if (!line.remove(path, waiter)) return;
      reject(signal?.reason);
      // A lighter task may fit now.
      admit();
    };
    line.push(path, waiter, rank);
    signal?.addEventListener("abort", giveUp);
    try {
      // The task may run at once: as a guest, or ahead of others that have to wait.
      admit();
      await whileWaiting(() => promise);
    } catch (error) {
      // `whileWaiting` may fail after the task was admitted.
      const entered = admitted.get(waiter);
      if (entered === undefined) line.remove(path, waiter);
      else leave(task, entered);
      throw error;
    } finally {
      signal?.removeEventListener("abort", giveUp);
    }
    return admitted.get(waiter) ?? "regular";
  };

  return {
    running: slots.running,
    waiting: () => line.waiting(),
    run: async (work, { weight = 1, path = [], ...waits } = {}) => {
      const task = { path, weight: Math.min(weight, width) };
      const slot = await enter(task, waits);
      const startMs = nowMs();
      try {
        return await work();
      } finally {
        line.charge(path, (nowMs() - startMs) * task.weight);
        leave(task, slot);
      }
    },
  };
}

/** Counts the slots of running tasks: `width` of weight, and `guests` for tasks under whose first part nothing runs. */
function openSlots(width: number, guests: number) {
  /** Running tasks by the first part of their path. */
  const runningOf = new Map<string, number>();
  let running = 0;
  let runningGuests = 0;
  const fits = (weight: number): boolean => running + weight <= width;
  const isIdle = (first: string): boolean => !runningOf.has(first);

  return {
    fits,
    isIdle,
    running: () => running,
    /** Returns the slot that a task can take now; undefined: it has to wait. */
    find: ({ path: [first], weight }: Task): Slot | undefined => {
      if (fits(weight)) return "regular";
      return runningGuests < guests && first !== undefined && isIdle(first) ? "guest" : undefined;
    },
    take: ({ path: [first = ""], weight }: Task, slot: Slot): void => {
      runningOf.set(first, (runningOf.get(first) ?? 0) + 1);
      if (slot === "guest") runningGuests += 1;
      else running += weight;
    },
    free: ({ path: [first = ""], weight }: Task, slot: Slot): void => {
      const left = (runningOf.get(first) ?? 1) - 1;
      if (left === 0) runningOf.delete(first);
      else runningOf.set(first, left);
      if (slot === "guest") runningGuests -= 1;
      else running -= weight;
    },
  };
}
