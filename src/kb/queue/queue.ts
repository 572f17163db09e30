/**
 * The durable queue of work that continues after its request was answered. Promises:
 *
 * - A crash loses no job. If a worker crashes while it works on a job, the job is leased again and its crash count grows. A job
 *   that was leased but not worked on, or that a stop handed back, keeps its count.
 * - A job has one lease at a time, whatever the number of processes. Each lease has a higher fencing token than its
 *   predecessor, and only the latest can end or postpone the job.
 * - In a queue that is `IN_ORDER`, the jobs of one line are leased one after another, in the order in which they were put.
 * - The queue `ingest` has one entry for each document, put and replaced by the changes of the document (`Records.enqueueUpdate`). A
 *   newer change ends the lease of a running one.
 * - An account has a share of the capacity for waiting jobs (`fitsShare`), so that other accounts always find some.
 *
 * All times come from the worker's monotonic clock, which is never set back while the worker runs.
 */
export interface Queue {
  /** Throws `queue_full`. */
  put(job: NewJob): Promise<void>;
  /**
   * The jobs of each line that may be leased now: postponed jobs that are due, then new ones, both oldest first. In `ingest`
   * these are the newest changes, and of `perLine` a quarter for the oldest, in any order. In a queue that is in order this is
   * the first job of the line or none.
   */
  due(query: DueQuery): Promise<readonly WaitingJob[]>;
  /** The entry of a document in the queue `ingest`, due or not. */
  change(query: ChangeQuery): Promise<(WaitingJob & { readonly dueMs: number }) | undefined>;
  /** Undefined: the job is gone, another worker has it, or it is not due. A worker may lease its own job again. */
  lease(request: LeaseRequest): Promise<LeasedJob | undefined>;
  /**
   * Renews leases for another `LEASE_MS`. `isWorking` false: a crash of the worker from now on does not count against the
   * jobs. Returns the numbers of the jobs that are still leased.
   */
  renew(renewal: Renewal): Promise<readonly number[]>;
  /**
   * Replaces the pages that were read for a leased job (`openKeptPages`), unless all of its account would exceed
   * `PAGES_BYTES_MAX`. They are no part of its body. False: the lease was lost.
   */
  keepPages(lease: Lease, pages: string): Promise<boolean>;
  /** Returns them. Undefined: there are none, or the lease was lost. */
  pagesOf(lease: Lease): Promise<string | undefined>;
  /**
   * Notes in the warning of a leased job's document which of its pages are being read, unless its text has a warning. False: the
   * lease was lost, or it has one.
   */
  noteReading(lease: Lease, warning: string): Promise<boolean>;
  /** Removes a finished job. False: the lease was lost. */
  complete(lease: Lease): Promise<boolean>;
  /** Ends a lease and makes the job wait. False: the lease was lost. */
  postpone(lease: Lease, wait: Wait): Promise<boolean>;
  /** Ends a lease and gives the job up; it stays to be counted, without its body. False: the lease was lost. */
  fail(lease: Lease): Promise<boolean>;
  /** Removes up to `limit` failed jobs put before `beforeMs`. Returns how many. */
  purgeFailed(queue: QueueName, beforeMs: number, limit: number): Promise<number>;
  /** Ends the leases of a worker that stops, except of jobs that a transaction has locked. No job's crash count grows. */
  release(worker: string): Promise<void>;
  /**
   * Prepares the queue when a worker starts. Ends waits that began in the future: the clock was set back since. `isAlone`: also
   * ends the leases of all other workers, which are gone.
   */
  resume(worker: string, nowMs: number, isAlone: boolean): Promise<void>;
  /** When the next postponed job is due, or the next lease ends; undefined when there is none. */
  nextDueMs(queue: QueueName, nowMs: number): Promise<number | undefined>;
  /** Counts the jobs of one account, or of all. `nowMs` is needed for `overdue` and `texts`. */
  figures(queue: QueueName, accountId: string | undefined, nowMs?: number): Promise<QueueFigures>;
}

export type QueueName = "ingest" | "chat" | "webhook";

/** Queues whose lines run in order. In the others several jobs of a line may be leased at once. */
export const IN_ORDER: Readonly<Record<QueueName, boolean>> = {
  ingest: false,
  chat: true,
  webhook: false,
};

/**
 * The line of a document's entry: one for each owner, and others for those that need something before they may start again (`need`).
 */
export function ingestLine(accountId: string, ownerId: string, need = ""): string {
  return `${need}/${accountId}/${ownerId}`;
}

/** Returns what an entry on a line of `ingest` needs before it may start; empty: nothing. */
export function needOf(line: string): string {
  return line.slice(0, line.indexOf("/"));
}

/** Wait before a due job is tried again that could not be leased: another transaction may have locked it. */
export const LOCKED_MS = 1000;
/** Duration of a lease that is not renewed. A worker renews three times in this time. */
export const LEASE_MS = 60_000;

export interface NewJob {
  readonly queue: QueueName;
  /** The fairness key: accounts take turns. */
  readonly accountId: string;
  /** The key of order and of fairness within an account, for example a thread. In `ingest`: the owner (`ingestLine`). */
  readonly line: string;
  /** The job's external name, for example the id of a message. */
  readonly name: string;
  /** JSON text; the queue does not interpret it. */
  readonly body: string;
  readonly nowMs: number;
  /** Most waiting jobs of all accounts. */
  readonly jobsMax: number;
  /** Most characters in the bodies of waiting jobs. Default: no bound. */
  readonly charsMax?: number;
  /** The owner within the account. Default: none. */
  readonly ownerId?: string;
  /** The uploaded file that the job needs; it is not removed while the job waits. */
  readonly fileToken?: string | null;
}

/** A job without its body. */
export interface WaitingJob {
  readonly number: number;
  readonly accountId: string;
  readonly ownerId: string;
  readonly line: string;
  readonly name: string;
  /** Bytes of its body as stored. */
  readonly bodyBytes: number;
  /** When the job was put, or in `ingest` the last change of its document. */
  readonly changedMs: number;
  /** How often a worker crashed while it worked on the job. */
  readonly crashes: number;
}

export interface ChangeQuery {
  readonly accountId: string;
  /** The id of the document. */
  readonly id: string;
  readonly nowMs: number;
}

export interface DueQuery {
  readonly queue: QueueName;
  readonly nowMs: number;
  readonly perLine: number;
}

export interface LeaseRequest {
  readonly number: number;
  readonly worker: string;
  readonly nowMs: number;
  /** Ends a wait early. */
  readonly isEarly?: boolean;
  /** Waits for a transaction that has locked the job, and throws `store_busy` if that takes too long. Default: it is not leased. */
  readonly waits?: boolean;
}

/** Identifies one lease of one job. */
export interface Lease {
  readonly number: number;
  /** Grows with each lease of the job. */
  readonly token: number;
}

export interface LeasedJob extends WaitingJob, Lease {
  readonly body: string;
  readonly createdMs: number;
  /** How often it was postponed with `counts`. */
  readonly attempts: number;
}

export interface Renewal {
  readonly worker: string;
  readonly leases: readonly Lease[];
  readonly isWorking: boolean;
  readonly nowMs: number;
  /** As in `LeaseRequest`. Default: the leases of locked jobs are not renewed. */
  readonly waits?: boolean;
}

export interface Wait {
  /** 0: due at once, whatever the clock says. */
  readonly dueMs: number;
  readonly nowMs: number;
  /** Whether the wait follows a failed attempt. */
  readonly counts: boolean;
  /** Moves the job to another line. Default: it stays. */
  readonly line?: string;
}

export interface QueueFigures {
  readonly waiting: number;
  readonly failed: number;
  /** When the oldest waiting job was put. */
  readonly oldestMs: number | null;
  /** Jobs that have been due for ten minutes, in which no worker had them or worked on them. */
  readonly overdue: number;
  /** Jobs without a file that are due and need nothing first (`ingestLine`). One that a worker has may only wait for the network. */
  readonly texts: number;
}
