import { type Fifo, openFifo } from "../../lib/fifo.ts";
import { FIRST_WINDOW, type Window } from "../plan/window.ts";
import { type JobKind, type Rank, RECENT, rankOf } from "./order.ts";

/**
 * Jobs that share slots, and how many are prepared ahead. Recent changes, and deletes where they have a reserve, have slots
 * beyond those of the backlog.
 */
export type Share = "backlog" | "recent" | "delete" | "recentDelete";

/** The jobs of one owner, rank and kind: those that wait in order of arrival, and the number of those under way. */
export interface Line<Job> {
  readonly owner: unknown;
  readonly rank: Rank;
  readonly kind: JobKind;
  readonly share: Share;
  readonly jobs: Fifo<{ readonly job: Job; readonly seq: number }>;
  /** Jobs that are being prepared, ready or in flight. */
  held: number;
  /** The same of all lines of its owner and rank. */
  readonly load: { held: number };
  /** Jobs that wait without a slot. */
  waiting: number;
  /** Bytes in memory of its jobs. */
  bytes: number;
  window: Window;
}

/** Jobs prepared together. They share one transaction for their intents. Reading so many blocks the loop for some ms. */
export const BATCH_JOBS = 128;
/** Bytes in memory of everything prepared or in flight. A larger file goes alone. */
const BYTES_MAX = 64 * 1024 * 1024;
/** Bytes of a batch. Recent changes, and a line that holds nothing, may use this much even if others have taken all. */
const BATCH_BYTES_MAX = BYTES_MAX / 4;

/** The lines of a queue, and the memory that they share. */
export interface Lines<Job> {
  readonly all: readonly Line<Job>[];
  /** Adds a job to its line, which it returns. */
  add(job: Job, isRecent: boolean): Line<Job>;
  /** Reports whether the first job of a line may be prepared, as far as order of arrival and bytes allow it. */
  mayTake(line: Line<Job>): boolean;
  /** Takes the first jobs of a line, at most `count`, and returns them with the bytes that they may load. */
  take(line: Line<Job>, count: number): { readonly jobs: readonly Job[]; readonly bytes: number };
  /** Counts jobs that begin or end, and the bytes that they load or release. */
  hold(line: Line<Job>, jobs: number, bytes: number): void;
}

/** Opens lines without jobs. */
export function openLines<Job>({
  lineOf,
  bytesOf,
  reserve = 0,
}: {
  readonly lineOf: (job: Job) => Pick<Line<Job>, "owner" | "kind">;
  readonly bytesOf: (job: Job) => number;
  readonly reserve?: number;
}): Lines<Job> {
  const all: Line<Job>[] = [];
  const byOwner = new Map<unknown, Line<Job>[]>();
  let arrived = 0;
  let bytesHeld = 0;

  const lineFor = (owner: unknown, kind: JobKind, rank: Rank): Line<Job> => {
    const lines = byOwner.get(owner) ?? [];
    byOwner.set(owner, lines);
    const known = lines.find((line) => line.rank === rank && line.kind === kind);
    if (known !== undefined) return known;
    const load = lines.find((other) => other.rank === rank)?.load ?? { held: 0 };
    const counts = { held: 0, waiting: 0, bytes: 0, window: FIRST_WINDOW };
    const isRecent = rank === RECENT;
    const ofReserve = isRecent ? "recentDelete" : "delete";
    const share = kind === "delete" && reserve > 0 ? ofReserve : isRecent ? "recent" : "backlog";
    const line: Line<Job> = { owner, rank, kind, share, load, jobs: openFifo(), ...counts };
    lines.push(line);
    all.push(line);
    return line;
  };
  const hasRoom = (line: Line<Job>, bytes: number): boolean => {
    if (bytesHeld === 0 || bytesHeld + bytes <= BYTES_MAX) return true;
    const mayExceed = line.bytes === 0 || line.rank === RECENT;
    return (
      mayExceed && line.bytes + bytes <= BATCH_BYTES_MAX && bytesHeld + bytes <= BYTES_MAX + BATCH_BYTES_MAX
    );
  };
  /** Reports whether jobs of the line's owner that arrived earlier have yet to be prepared. */
  const isBehind = ({ owner }: Line<Job>, seq: number): boolean =>
    byOwner.get(owner)?.some((other) => (other.jobs.peek()?.seq ?? Infinity) < seq) === true;

  return {
    all,
    add: (job, isRecent) => {
      const { owner, kind } = lineOf(job);
      const line = lineFor(owner, kind, rankOf(kind, isRecent));
      line.jobs.push({ job, seq: (arrived += 1) });
      return line;
    },
    mayTake: (line) => {
      const head = line.jobs.peek();
      if (head === undefined) return false;
      if (line.kind === "delete" && line.rank !== RECENT && isBehind(line, head.seq)) return false;
      return hasRoom(line, bytesOf(head.job));
    },
    take: (line, count) => {
      const jobs: Job[] = [];
      let bytes = 0;
      for (let next = line.jobs.peek(); next !== undefined; next = line.jobs.peek()) {
        const more = bytes + bytesOf(next.job);
        if (jobs.length >= Math.min(count, BATCH_JOBS)) break;
        if (jobs.length > 0 && (more > BATCH_BYTES_MAX || !hasRoom(line, more))) break;
        bytes = more;
        jobs.push(next.job);
        line.jobs.shift();
      }
      return { jobs, bytes };
    },
    hold: (line, jobs, bytes) => {
      line.held += jobs;
      line.load.held += jobs;
      line.bytes += bytes;
      bytesHeld += bytes;
    },
  };
}
