import { openFifo, type Fifo } from "../../lib/fifo.ts";
import { FIRST_WINDOW, type Window } from "../plan/window.ts";

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

/** The facts of jobs that a queue needs. */
export interface WorkQueueOptions<Job> {
  /** Jobs of one owner and kind wait in one line; lines share the width. Values are compared as keys of a map. */
  readonly lineOf: (job: Job) => {
    readonly owner: unknown;
    readonly kind: string;
    /** Whether the line may use the reserve. */
    readonly isReserved?: boolean;
  };
  /** Slots beyond the width for reserved lines, which then do not wait for blocked ones. Default: 0. */
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

/** The jobs of one owner and kind, and their progress. */
export interface Line<Job> {
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

/** State that the parts of a queue share. */
export interface Shared<Job> {
  /** In the order in which they are prepared. */
  lines: Line<Job>[];
  /** Bytes in memory of everything prepared or in flight. */
  bytes: number;
  stopped: boolean;
  readonly waiter: Waiter;
}

interface Waiter {
  /** Resolves when the condition holds. Only the pump waits here, and `stop` after the pump has ended. */
  readonly until: (isOver: () => boolean) => Promise<void>;
  /** Checks the condition again. */
  readonly wake: () => void;
}

/** Opens a waiter. One caller waits at a time. */
export function openWaiter(): Waiter {
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

/** Opens an empty line. */
export function openLine<Job>(owner: unknown, isLast: boolean, isReserved: boolean): Line<Job> {
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
