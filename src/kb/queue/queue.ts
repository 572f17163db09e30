/**
 * The durable queue of work that goes on after its request was answered. Promises:
 *
 * - A crash loses no job. A job that was being worked on when its worker ended is leased again, and its crash count grows;
 *   a job that was leased but not worked on, and one that a stop handed back, keeps its count.
 * - A job has one lease at a time, whatever the number of processes. Each lease has a higher fencing token than the one
 *   before, and only the last one can end or postpone the job.
 * - Jobs of one line of a queue in `IN_ORDER` are leased one after another, in the order in which they were put.
 * - An account has a share of the room for waiting jobs (`fitsShare`), so that another one always finds some.
 *
 * Times are those of the worker's clock for waits, which is never set back while it runs.
 */
export interface Queue {
  /** Throws `queue_full`. */
  put(job: NewJob): Promise<void>;
  /**
   * The jobs of each line that may be leased now: those that were postponed and are due, then new ones, both oldest first.
   * Of a queue in order that is the first of the line or none.
   */
  due(query: DueQuery): Promise<readonly WaitingJob[]>;
  /** Jobs with higher numbers than that, by number: every job that is put later has a higher one. */
  after(query: AfterQuery): Promise<readonly QueuedJob[]>;
  /** The first job of a line, due or not. */
  first(query: FirstQuery): Promise<QueuedJob | undefined>;
  /** Undefined: the job is gone, another worker has it, or it is not its turn. A worker may lease its own job once more. */
  lease(request: LeaseRequest): Promise<LeasedJob | undefined>;
  /**
   * Keeps leases for another `LEASE_MS`. `isWorking` false: what ends the worker from now on is not the jobs' doing. Answers
   * the numbers of the jobs that are still leased.
   */
  renew(renewal: Renewal): Promise<readonly number[]>;
  /** Removes a job that is done. False: the lease was lost. */
  complete(lease: Lease): Promise<boolean>;
  /** Ends a lease and lets the job wait. False: the lease was lost. */
  postpone(lease: Lease, wait: Wait): Promise<boolean>;
  /** Ends a lease and keeps the job as a dead letter. False: the lease was lost. */
  fail(lease: Lease, problem: string): Promise<boolean>;
  /** Ends the leases of a worker that stops. Nothing counts as a crash. */
  release(worker: string): Promise<void>;
  /**
   * For the start of a worker. Ends waits that begin in the future: the clock was set back since. `isAlone`: ends the leases of
   * all other workers too, which are gone.
   */
  resume(worker: string, nowMs: number, isAlone: boolean): Promise<void>;
  /** When the next postponed job is due; undefined where none waits. */
  nextDueMs(queue: QueueName, nowMs: number): Promise<number | undefined>;
  /** Of one account, or of all. */
  figures(queue: QueueName, accountId: string | undefined): Promise<QueueFigures>;
}

export type QueueName = "ingest" | "chat" | "webhook";

/** Queues whose lines run in order: of the others several jobs of a line are leased at once. */
export const IN_ORDER: Readonly<Record<QueueName, boolean>> = {
  ingest: true,
  chat: true,
  webhook: false,
};

/** A lease that is not renewed ends after so long; a worker renews its leases three times as often. */
export const LEASE_MS = 60_000;

export interface NewJob {
  readonly queue: QueueName;
  /** The account whose turn it uses. */
  readonly accountId: string;
  /** The order key: what its jobs belong to, as a thread. One of its own where nothing orders it. */
  readonly line: string;
  /** What others know the job by, as the id of a message. */
  readonly name: string;
  /** JSON text, which the queue does not read. */
  readonly body: string;
  readonly nowMs: number;
  /** Waiting jobs of all accounts above which no more are taken. */
  readonly jobsMax: number;
  /** Characters of the bodies of waiting jobs above which no more are taken. Default: no bound. */
  readonly charsMax?: number;
  /** Whose work it is within the account. Default: nobody's. */
  readonly ownerId?: string;
  /** The uploaded file it needs, which is not collected meanwhile. */
  readonly fileToken?: string | null;
}

/** A job without what it brings. */
export interface WaitingJob {
  readonly number: number;
  readonly accountId: string;
  readonly line: string;
  /** How often a worker ended while it worked on the job. */
  readonly crashes: number;
}

/** A waiting job as `after` and `first` give it. */
export interface QueuedJob extends WaitingJob {
  readonly ownerId: string;
  /** When it may be leased, by the end of a wait or of another lease. */
  readonly dueMs: number;
  /** Bytes of its body, as the store keeps it. */
  readonly bodyBytes: number;
}

export interface AfterQuery {
  readonly queue: QueueName;
  readonly number: number;
  readonly limit: number;
  readonly nowMs: number;
}

export interface FirstQuery {
  readonly queue: QueueName;
  readonly line: string;
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
  /** Ends a wait before its time. */
  readonly isEarly?: boolean;
}

/** Names one lease of one job. */
export interface Lease {
  readonly number: number;
  /** Grows with each lease of the job. */
  readonly token: number;
}

export interface LeasedJob extends WaitingJob, Lease {
  readonly name: string;
  readonly body: string;
  readonly createdMs: number;
  /** Times postponed by `counts`. */
  readonly attempts: number;
}

export interface Renewal {
  readonly worker: string;
  readonly leases: readonly Lease[];
  readonly isWorking: boolean;
  readonly nowMs: number;
}

export interface Wait {
  /** 0: due at once, whatever the clock says. */
  readonly dueMs: number;
  readonly nowMs: number;
  /** Whether this was an attempt that failed. */
  readonly counts: boolean;
}

export interface QueueFigures {
  readonly waiting: number;
  readonly dead: number;
  /** When the oldest waiting job was put. */
  readonly oldestMs: number | null;
}
