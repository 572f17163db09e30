import type { Alongside } from "./request-note.ts";
import type { Expected, NewResource, Resource, ResourceKey } from "./records.ts";

/**
 * The queue of documents that are taken in after their request was answered. Promises:
 *
 * - A job and the state `queued` of its resource are one write; so are its end and what comes of it.
 * - A crash loses no job, and a job that was begun is begun again.
 * - Jobs of one resource come out in the order in which they went in.
 */
export interface JobStore {
  /** Makes a resource without text, in the state `queued`, and its job. Throws `queue_full`. */
  enqueueCreate(resource: NewResource, job: NewJob, alongside?: Alongside): Promise<Resource>;
  /** Puts a job behind the others of its resource. Undefined: no such resource. Throws `queue_full`. */
  enqueueUpdate(
    at: ResourceKey & Expected & { readonly nowIso: string },
    job: NewJob,
    alongside?: Alongside,
  ): Promise<Resource | undefined>;
  /** Jobs with higher numbers than that, in their order: every job that is put in later has a higher one. */
  queuedJobs(after: number, limit: number): Promise<readonly QueuedJob[]>;
  /** The first job of a resource, without what it brings. */
  queuedJob(at: ResourceKey): Promise<QueuedJob | undefined>;
  /** The first job of a resource. */
  jobOf(at: ResourceKey): Promise<Job | undefined>;
  /** Notes that work on a job begins; answers how often it has begun by now. 0: the job is gone. */
  beginJob(number: number): Promise<number>;
  /** Lets a job wait, for a failure that goes by itself; that does not count as begun. */
  postponeJob(number: number, dueMs: number): Promise<void>;
  /**
   * Takes back that work on a job began, for work that was broken off by a stop: `begun` is how often it had begun before.
   * Doing so again changes nothing. The job is due when it was.
   */
  handBackJob(number: number, begun: number): Promise<void>;
  /** Ends a job that cannot be done: its resource has the state `error`, and what it was before stays searchable. */
  failJob(
    number: number,
    failure: { readonly code: string; readonly message: string },
    nowIso: string,
  ): Promise<void>;
  /** Of one account, or of all. */
  jobFigures(accountId: string | undefined): Promise<JobFigures>;
}

export interface NewJob {
  readonly kind: JobKind;
  /** JSON text of the checked request, whose fields the store does not look at. */
  readonly body: string;
  /** The uploaded file it needs, which must not be collected meanwhile. */
  readonly fileToken: string | null;
  readonly nowMs: number;
  /**
   * Jobs of all accounts, and characters of their bodies, above which no more are taken. An account has a share of each
   * (`fitsShare`).
   */
  readonly jobsMax: number;
  readonly charsMax: number;
}

export type JobKind = "create" | "update";

export interface QueuedJob extends ResourceKey {
  readonly number: number;
  readonly ownerId: string;
  readonly dueMs: number;
  /** Bytes of its body, as the store keeps it. */
  readonly bodyBytes: number;
  /** How often it has begun and not ended. */
  readonly begun: number;
}

export interface Job {
  readonly number: number;
  readonly kind: JobKind;
  readonly body: string;
  readonly dueMs: number;
  /** How often it has begun and not ended. */
  readonly begun: number;
  /** Times postponed. */
  readonly postponed: number;
}

export interface JobFigures {
  readonly waiting: number;
  /** When the oldest was put in. */
  readonly oldestMs: number | null;
  /** Live resources in the state `error`. */
  readonly failed: number;
}
