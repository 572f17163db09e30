import { type Fifo, openFifo } from "../../../lib/fifo.ts";
import { FIRST_WINDOW, type Window } from "../../plan/window.ts";
import { type JobKind, type Rank, RECENT, rankOf } from "./order.ts";

/** The jobs of one owner, rank and kind: those that wait in order of arrival, and the number of those under way. */
export interface Line<Job> {
  readonly rank: Rank;
  readonly kind: JobKind;
  readonly jobs: Fifo<{ readonly job: Job; readonly seq: number }>;
  /** All lines of its owner. */
  readonly ofOwner: readonly Line<Job>[];
  /** Jobs that are being prepared, ready or in flight. */
  held: number;
  /** Jobs that wait without a slot. */
  waiting: number;
  /** Bytes in memory of its jobs. */
  bytes: number;
  window: Window;
}

/** The lines of a queue, and the bytes in memory of what they hold. */
export interface Lines<Job> {
  readonly all: Line<Job>[];
  readonly byOwner: Map<unknown, Line<Job>[]>;
  arrived: number;
  bytes: number;
  /** Owners share the width. Values are compared as keys of a map. */
  readonly lineOf: (job: Job) => { readonly owner: unknown; readonly kind: JobKind };
  /** Bytes that preparing a job may load into memory. */
  readonly bytesOf: (job: Job) => number;
}

/** Jobs prepared together. They share one transaction for their intents. Reading so many blocks the loop for some ms. */
export const BATCH_JOBS = 128;
/** Bytes in memory of everything prepared or in flight. A larger file goes alone. */
const BYTES_MAX = 64 * 1024 * 1024;
/** Bytes of a batch. Recent changes, and a line that holds nothing, may use this much even if others have taken all. */
const BATCH_BYTES_MAX = BYTES_MAX / 4;

/** Adds a job to its line, which it returns. */
export function addToLine<Job>(lines: Lines<Job>, job: Job, isRecent: boolean): Line<Job> {
  const { owner, kind } = lines.lineOf(job);
  const rank = rankOf(kind, isRecent);
  const ofOwner = lines.byOwner.get(owner) ?? [];
  lines.byOwner.set(owner, ofOwner);
  let line = ofOwner.find((each) => each.rank === rank && each.kind === kind);
  if (line === undefined) {
    const counts = { held: 0, waiting: 0, bytes: 0, window: FIRST_WINDOW };
    line = { rank, kind, jobs: openFifo(), ofOwner, ...counts };
    ofOwner.push(line);
    lines.all.push(line);
  }
  line.jobs.push({ job, seq: (lines.arrived += 1) });
  return line;
}

/** Returns how many jobs of the line's owner and rank are under way. */
export function loadOf<Job>({ ofOwner, rank }: Line<Job>): number {
  return ofOwner.reduce((sum, each) => sum + (each.rank === rank ? each.held : 0), 0);
}

/** Reports whether the first job of a line may be prepared, as far as order of arrival and bytes allow it. */
export function mayTake<Job>(lines: Lines<Job>, line: Line<Job>): boolean {
  const head = line.jobs.peek();
  if (head === undefined) return false;
  // Deletes of the backlog follow all jobs of their owner that arrived earlier and have yet to be prepared.
  const isBehind = ({ jobs }: Line<Job>): boolean => (jobs.peek()?.seq ?? Infinity) < head.seq;
  if (line.kind === "delete" && line.rank !== RECENT && line.ofOwner.some(isBehind)) return false;
  return hasRoom(lines, line, lines.bytesOf(head.job));
}

/** Takes the first jobs of a line, at most `count`, and returns them with the bytes that they may load. */
export function takeFromLine<Job>(
  lines: Lines<Job>,
  line: Line<Job>,
  count: number,
): { readonly jobs: readonly Job[]; readonly bytes: number } {
  const jobs: Job[] = [];
  let bytes = 0;
  for (let next = line.jobs.peek(); next !== undefined; next = line.jobs.peek()) {
    const more = bytes + lines.bytesOf(next.job);
    if (jobs.length >= Math.min(count, BATCH_JOBS)) break;
    if (jobs.length > 0 && (more > BATCH_BYTES_MAX || !hasRoom(lines, line, more))) break;
    bytes = more;
    jobs.push(next.job);
    line.jobs.shift();
  }
  return { jobs, bytes };
}

/** Counts jobs that begin or end, and the bytes that they load or release. */
export function hold<Job>(lines: Lines<Job>, line: Line<Job>, jobs: number, bytes: number): void {
  line.held += jobs;
  line.bytes += bytes;
  lines.bytes += bytes;
}

function hasRoom<Job>(lines: Lines<Job>, line: Line<Job>, bytes: number): boolean {
  if (lines.bytes === 0 || lines.bytes + bytes <= BYTES_MAX) return true;
  const mayExceed = line.bytes === 0 || line.rank === RECENT;
  return (
    mayExceed && line.bytes + bytes <= BATCH_BYTES_MAX && lines.bytes + bytes <= BYTES_MAX + BATCH_BYTES_MAX
  );
}
