import { type Fifo, openFifo } from "../../lib/fifo.ts";
import { FIRST_WINDOW, type Window } from "../plan/window.ts";
import { type JobKind, type Rank, RECENT, rankOf } from "./order.ts";

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

/** A position in the order of arrival. */
interface Arrived {
  readonly seq: number;
}

/** Jobs that are prepared together, and the bytes that they may load. */
interface Batch<Job> extends Arrived {
  readonly jobs: readonly Job[];
  readonly need: number;
}

/** The jobs of one owner, rank and kind, and their progress. */
export interface Line<Job> {
  readonly owner: unknown;
  readonly rank: Rank;
  readonly kind: JobKind;
  /** Shared by the lines of one owner and rank: `ahead` of them are being prepared or ready, `running` in flight. */
  readonly load: { ahead: number; running: number };
  readonly jobs: Fifo<Arrived & { readonly job: Job }>;
  /** Will be prepared as soon as there is room. */
  batch: Batch<Job> | undefined;
  /** Jobs being read, or whose intents are being written to disk. */
  preparing: number;
  /** Prepared, and not yet in flight. */
  ready: (Arrived & { readonly send: Send<Job> })[];
  running: number;
  /** Jobs that wait without a slot. */
  waiting: number;
  bytes: number;
  window: Window;
}

/** State that the parts of a queue share. */
export interface Shared<Job> {
  readonly lines: readonly Line<Job>[];
  width: number;
  /** Bytes in memory of everything prepared or in flight. */
  bytes: number;
  isStopped: boolean;
}

/** Jobs prepared together. They share one transaction for their intents. Reading so many blocks the loop for some ms. */
const BATCH_JOBS = 128;
/** Bytes in memory of everything prepared or in flight. A larger file goes alone. */
const BYTES_MAX = 64 * 1024 * 1024;
/** Bytes of a batch. Recent changes, and a line that holds nothing, may use this much even if others have taken all. */
const BATCH_BYTES_MAX = BYTES_MAX / 4;

/** Opens the lines of a queue. `of` returns a line, and opens it the first time. */
export function openLines<Job>(): {
  readonly all: readonly Line<Job>[];
  readonly of: (owner: unknown, kind: JobKind, isRecent: boolean) => Line<Job>;
} {
  const all: Line<Job>[] = [];
  const byOwner = new Map<unknown, Line<Job>[]>();
  return {
    all,
    of: (owner, kind, isRecent) => {
      const rank = rankOf(kind, isRecent);
      const lines = byOwner.get(owner) ?? [];
      byOwner.set(owner, lines);
      const known = lines.find((line) => line.rank === rank && line.kind === kind);
      if (known !== undefined) return known;
      const line: Line<Job> = {
        owner,
        rank,
        kind,
        load: lines.find((other) => other.rank === rank)?.load ?? { ahead: 0, running: 0 },
        jobs: openFifo(),
        batch: undefined,
        preparing: 0,
        ready: [],
        running: 0,
        waiting: 0,
        bytes: 0,
        window: FIRST_WINDOW,
      };
      lines.push(line);
      all.push(line);
      return line;
    },
  };
}

/** Returns the position of the next job that nobody prepares yet; undefined: there is none. */
export function headOf<Job>({ batch, jobs }: Line<Job>): number | undefined {
  return (batch ?? jobs.peek())?.seq;
}

/** Takes the line's next batch of at most `count` jobs, unless it has one. The line has jobs. */
export function fillBatch<Job>(line: Line<Job>, count: number, bytesOf: (job: Job) => number): Batch<Job> {
  if (line.batch !== undefined) return line.batch;
  const seq = headOf(line) ?? 0;
  const jobs: Job[] = [];
  let need = 0;
  while (jobs.length < Math.min(BATCH_JOBS, count)) {
    const next = line.jobs.peek()?.job;
    if (next === undefined || (jobs.length > 0 && need + bytesOf(next) > BATCH_BYTES_MAX)) break;
    need += bytesOf(next);
    jobs.push(next);
    line.jobs.shift();
  }
  return (line.batch = { jobs, need, seq });
}

/** Counts bytes that a line loads, or releases. */
export function hold<Job>(shared: Shared<Job>, line: Line<Job>, more: number): void {
  shared.bytes += more;
  line.bytes += more;
}

/** Reports whether a line may load `need` more bytes. */
export function hasRoom<Job>({ bytes }: Shared<Job>, line: Line<Job>, need: number): boolean {
  if (bytes === 0 || bytes + need <= BYTES_MAX) return true;
  const mayExceed = line.bytes === 0 || line.rank === RECENT;
  return mayExceed && line.bytes + need <= BATCH_BYTES_MAX && bytes + need <= BYTES_MAX + BATCH_BYTES_MAX;
}

/** Drops what is ready and not in flight, where `test` is true, and returns it. */
export function dropReady<Job>(shared: Shared<Job>, test: (job: Job) => boolean): Job[] {
  const dropped: Send<Job>[] = [];
  for (const line of shared.lines) {
    const { yes = [], no = [] } = Object.groupBy(line.ready, ({ send }) => (test(send.job) ? "yes" : "no"));
    line.ready = no;
    line.load.ahead -= yes.length;
    for (const { send } of yes) {
      hold(shared, line, -send.bytes);
      dropped.push(send);
    }
  }
  for (const send of dropped) send.drop();
  return dropped.map(({ job }) => job);
}
