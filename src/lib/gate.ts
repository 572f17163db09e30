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
}

type Slot = "regular" | "guest";

interface Waiter {
  readonly path: readonly string[];
  readonly weight: number;
  readonly enter: () => void;
}

/** Opens a gate that is fair among paths (`openFairLine`) and first in, first out within one path. */
export function openGate({
  width,
  lineMax,
  shareMax = lineMax,
  guests = 0,
  full,
  nowMs = () => performance.now(),
}: GateOptions): Gate {
  const line = openFairLine<Waiter>();
  /** Running tasks by the first part of their path. */
  const runningOf = new Map<string, number>();
  let running = 0;
  let runningGuests = 0;

  /** Returns the slot that a task can take now; undefined: it has to wait. */
  const freeSlot = ({ path, weight }: Pick<Waiter, "path" | "weight">): Slot | undefined => {
    if (running + weight <= width) return "regular";
    return runningGuests < guests && path.length > 0 && isIdle(path[0] ?? "") ? "guest" : undefined;
  };
  const isIdle = (first: string): boolean => !runningOf.has(first);

  const occupy = ({ path, weight }: Pick<Waiter, "path" | "weight">, slot: Slot): void => {
    const [first = ""] = path;
    runningOf.set(first, (runningOf.get(first) ?? 0) + 1);
    if (slot === "guest") runningGuests += 1;
    else running += weight;
  };

  const admit = (): void => {
    for (;;) {
      const isFree = running + (line.peek()?.weight ?? 0) <= width;
      // A light task never overtakes a heavy one, which could starve. A guest takes no regular slot.
      const accept = isFree ? undefined : isIdle;
      const next = line.peek(accept);
      const slot = next && freeSlot(next);
      if (next === undefined || slot === undefined) break;
      line.shift(accept);
      // Counted before the task wakes, so that no other task takes its slot.
      occupy(next, slot);
      slots.set(next, slot);
      next.enter();
    }
  };
  /** Slots of the admitted tasks that had to wait. */
  const slots = new WeakMap<Waiter, Slot>();

  const enter = async (
    path: readonly string[],
    weight: number,
    { signal, whileWaiting = (wait) => wait() }: Pick<WorkOptions, "signal" | "whileWaiting">,
  ): Promise<Slot> => {
    signal?.throwIfAborted();
    const slot = line.waiting() === 0 ? freeSlot({ path, weight }) : undefined;
    if (slot !== undefined) {
      occupy({ path, weight }, slot);
      return slot;
    }
    if (line.waiting() >= lineMax || line.waitingAt(path.slice(0, 1)) >= shareMax) throw full();
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const waiter: Waiter = { path, weight, enter: resolve };
    const giveUp = (): void => {
      // An admitted task is running and leaves at its end.
      if (!line.remove(path, waiter)) return;
      reject(signal?.reason);
      // A lighter task may fit now.
      admit();
    };
    line.push(path, waiter);
    signal?.addEventListener("abort", giveUp);
    try {
      // The task may run at once: as a guest, or ahead of others that have to wait.
      admit();
      await whileWaiting(() => promise);
    } catch (error) {
      // `whileWaiting` may fail after the task was admitted.
      const entered = slots.get(waiter);
      if (entered === undefined) line.remove(path, waiter);
      else leave(path, weight, entered);
      throw error;
    } finally {
      signal?.removeEventListener("abort", giveUp);
    }
    return slots.get(waiter) ?? "regular";
  };

  const leave = (path: readonly string[], weight: number, slot: Slot): void => {
    const [first = ""] = path;
    const left = (runningOf.get(first) ?? 1) - 1;
    if (left === 0) runningOf.delete(first);
    else runningOf.set(first, left);
    if (slot === "guest") runningGuests -= 1;
    else running -= weight;
    admit();
  };

  return {
    running: () => running,
    waiting: () => line.waiting(),
    run: async (work, { weight: asked = 1, path = [], ...waits } = {}) => {
      const weight = Math.min(asked, width);
      const slot = await enter(path, weight, waits);
      const startMs = nowMs();
      try {
        return await work();
      } finally {
        line.charge(path, (nowMs() - startMs) * weight);
        leave(path, weight, slot);
      }
    },
  };
}
