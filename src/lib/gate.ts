import { openFairLine } from "./fair-line.ts";

/** Lets work of at most `width` weight run at once and at most `lineMax` pieces wait. */
export interface Gate {
  /**
   * Runs the work when there is room. Throws what `full` makes when the line is full, and the signal's reason when that is
   * aborted while the work waits, which leaves the line then; in both cases nothing was started.
   */
  run<T>(work: () => Promise<T>, options?: WorkOptions): Promise<T>;
  /** The weight of what runs. */
  running(): number;
  waiting(): number;
}

export interface GateOptions {
  readonly width: number;
  readonly lineMax: number;
  /** Pieces that may wait of one path's first part. Default: `lineMax`. */
  readonly shareMax?: number;
  /**
   * Pieces that may run beyond the width while all of it is taken by others: each of a path's first part of which nothing
   * runs. So nobody waits for the end of another's long work. Default 0.
   */
  readonly guests?: number;
  /** Makes the error for what finds the line full. */
  readonly full: () => Error;
  /** Default: a clock that nobody sets. */
  readonly nowMs?: () => number;
}

export interface WorkOptions {
  readonly signal?: AbortSignal | undefined;
  /** Default 1. What weighs more than all that may run has to run alone. */
  readonly weight?: number;
  /** Runs the wait for room, where there is one. Default: just waits. */
  readonly whileWaiting?: (<T>(wait: () => Promise<T>) => Promise<T>) | undefined;
  /** Whose work it is, such as account and owner: the time of the gate is shared equally among them. Default: nobody's. */
  readonly path?: readonly string[] | undefined;
}

interface Waiter {
  readonly path: readonly string[];
  readonly weight: number;
  readonly enter: () => void;
}

/** Opens a gate: fair among paths (`openFairLine`), and within one path first come, first served. */
export function openGate({
  width,
  lineMax,
  shareMax = lineMax,
  guests = 0,
  full,
  nowMs = () => performance.now(),
}: GateOptions): Gate {
  const line = openFairLine<Waiter>();
  /** What runs of each path's first part, in pieces. */
  const pieces = new Map<string, number>();
  let running = 0;
  let guestsHere = 0;

  /** How a piece may begin now; undefined: it has to wait. */
  const roomFor = ({ path, weight }: Pick<Waiter, "path" | "weight">): "within" | "guest" | undefined => {
    if (running + weight <= width) return "within";
    return guestsHere < guests && path.length > 0 && isIdle(path[0] ?? "") ? "guest" : undefined;
  };
  const isIdle = (first: string): boolean => !pieces.has(first);

  const begin = ({ path, weight }: Pick<Waiter, "path" | "weight">, how: "within" | "guest"): void => {
    const [first = ""] = path;
    pieces.set(first, (pieces.get(first) ?? 0) + 1);
    if (how === "guest") guestsHere += 1;
    else running += weight;
  };

  const letIn = (): void => {
    for (;;) {
      const isFree = running + (line.peek()?.weight ?? 0) <= width;
      // What is light does not pass what is heavy, which would wait for ever. A guest takes nobody's room.
      const accept = isFree ? undefined : isIdle;
      const next = line.peek(accept);
      const how = next && roomFor(next);
      if (next === undefined || how === undefined) break;
      line.shift(accept);
      // Counted here, before it wakes: nobody else may take its room.
      begin(next, how);
      hows.set(next, how);
      next.enter();
    }
  };
  /** How those were let in that waited. */
  const hows = new WeakMap<Waiter, "within" | "guest">();

  const enter = async (
    path: readonly string[],
    weight: number,
    { signal, whileWaiting = (wait) => wait() }: Pick<WorkOptions, "signal" | "whileWaiting">,
  ): Promise<"within" | "guest"> => {
    signal?.throwIfAborted();
    const how = line.waiting() === 0 ? roomFor({ path, weight }) : undefined;
    if (how !== undefined) {
      begin({ path, weight }, how);
      return how;
    }
    if (line.waiting() >= lineMax || line.waitingAt(path.slice(0, 1)) >= shareMax) throw full();
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const waiter: Waiter = { path, weight, enter: resolve };
    const giveUp = (): void => {
      // Who was let in already runs, and leaves by itself.
      if (!line.remove(path, waiter)) return;
      reject(signal?.reason);
      // One that weighs less may have room.
      letIn();
    };
    line.push(path, waiter);
    signal?.addEventListener("abort", giveUp);
    try {
      // It may be its turn at once: as a guest, or before others that have to wait.
      letIn();
      await whileWaiting(() => promise);
    } catch (error) {
      // It was let in, and what ran its wait failed.
      const entered = hows.get(waiter);
      if (entered === undefined) line.remove(path, waiter);
      else leave(path, weight, entered);
      throw error;
    } finally {
      signal?.removeEventListener("abort", giveUp);
    }
    return hows.get(waiter) ?? "within";
  };

  const leave = (path: readonly string[], weight: number, how: "within" | "guest"): void => {
    const [first = ""] = path;
    const left = (pieces.get(first) ?? 1) - 1;
    if (left === 0) pieces.delete(first);
    else pieces.set(first, left);
    if (how === "guest") guestsHere -= 1;
    else running -= weight;
    letIn();
  };

  return {
    running: () => running,
    waiting: () => line.waiting(),
    run: async (work, { weight: asked = 1, path = [], ...waits } = {}) => {
      const weight = Math.min(asked, width);
      const how = await enter(path, weight, waits);
      const startMs = nowMs();
      try {
        return await work();
      } finally {
        line.charge(path, (nowMs() - startMs) * weight);
        leave(path, weight, how);
      }
    },
  };
}
