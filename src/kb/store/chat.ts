import type { Lease, NewJob } from "../queue/queue.ts";
import type { SameTransaction } from "./request-note.ts";
import type { StoredFile } from "./files.ts";
import type { ThreadKey } from "./thread-link.ts";
import type { NewDelivery } from "./webhooks.ts";

/**
 * The memory of threads. Promises:
 *
 * - A turn is written whole or not at all: question, answer, images, the end of its job and the webhook message about it.
 */
export interface ChatRecords {
  /** Returns the memory of a thread; empty if the thread does not exist. */
  thread(query: ThreadQuery): Promise<ThreadMemory>;
  /** A page of an agent's threads, the last used first. */
  threads(query: ThreadsQuery): Promise<ThreadsPage>;
  /** Removes a thread with its turns, and unlinks its images. Returns false if the thread does not exist. */
  removeThread(at: ThreadKey): Promise<boolean>;
  /**
   * Returns false, and writes nothing, if its job has ended or the lease was lost. Throws `reads_gone` if something that the answer was made from has been erased.
   */
  addTurn(turn: NewTurn): Promise<boolean>;

  /** Puts a question into the queue `chat` and notes its request; the answer is the job's name. Throws `queue_full`. */
  addQuestion(job: NewJob, sameTransaction?: Pick<SameTransaction, "request">): Promise<void>;

  /** Removes up to `limit` turns and threads not used since `beforeIso`. Returns the number of rows. */
  purgeThreads(beforeIso: string, limit: number): Promise<number>;
  /** Unlinks up to `limit` images linked to threads before `beforeIso`, so that their files are unused. Returns how many. */
  purgeThreadImages(beforeIso: string, limit: number): Promise<number>;
}

export interface AgentKey {
  readonly accountId: string;
  readonly id: string;
}

export interface ThreadQuery extends ThreadKey {
  /** Maximum number of turns; the newest are returned. */
  readonly turnsMax: number;
  /** No turn is added once the turns have this many characters, `shown` included. */
  readonly charsMax: number;
  readonly imagesMax: number;
  /** Leaves out images linked before this time. */
  readonly imagesSinceIso: string;
  /** Whether the turns have `shown`; otherwise it is empty. Default: false. */
  readonly withShown?: boolean;
  /** Only turns before this one. Default: all. */
  readonly beforeTurn?: number | undefined;
}

export interface ThreadMemory {
  /** Whether the thread exists. */
  readonly exists: boolean;
  /** Oldest first. */
  readonly turns: readonly StoredTurn[];
  /** Whether there are older turns. */
  readonly more: boolean;
  /** Number of the newest turn; undefined: there is none. */
  readonly newest: number | undefined;
  /** Newest first. */
  readonly images: readonly ThreadImage[];
}

/** An image that is linked to a thread. */
export interface ThreadImage extends StoredFile {
  /** Index in `turns` of the question it came with, 0 if that turn is older than all; undefined: no turn followed it. */
  readonly turnAt: number | undefined;
}

/** A question and its answer. */
export interface Turn {
  readonly user: string;
  /** As later questions show it to a model. */
  readonly answer: string;
}

/** A turn with JSON text of what people see of its answer. The store does not read it. */
export interface ShownTurn extends Turn {
  readonly shown: string;
}

export interface StoredTurn extends ShownTurn {
  /** Ascends within the thread. */
  readonly number: number;
  readonly messageId: string;
  readonly createdAt: string;
}

export interface ThreadsQuery extends AgentKey {
  /** Starts after this thread. Undefined: at the first. */
  readonly after: Pick<StoredThread, "number" | "usedAt"> | undefined;
  readonly limit: number;
  /** Characters of the first question that are returned. */
  readonly questionChars: number;
}

/** A thread without its turns. */
export interface StoredThread {
  readonly number: number;
  readonly threadId: string;
  /** When a turn or an image was last added. */
  readonly usedAt: string;
  readonly turns: number;
  /** The oldest question that is stored, shortened; null: there is none. */
  readonly question: string | null;
}

export interface ThreadsPage {
  readonly threads: readonly StoredThread[];
  readonly more: boolean;
}

export interface NewTurn {
  readonly accountId: string;
  readonly agentId: string;
  /** Undefined: the turn is not stored. */
  readonly threadId: string | undefined;
  /** Id of the answer. */
  readonly messageId: string;
  /** Undefined: the turn failed; only its job ends. */
  readonly turn: ShownTurn | undefined;
  /** Ids of the resources whose passages the answer was given. */
  readonly reads: readonly string[];
  /** The newest turn that the answer knew of. */
  readonly recalls: number | undefined;
  /** Files that the store does not know yet. */
  readonly files: readonly StoredFile[];
  /** Tokens of the turn's images. */
  readonly images: readonly string[];
  readonly nowIso: string;
  /** The lease of the job that makes this write. */
  readonly job?: Lease;
  readonly delivery?: NewDelivery;
}
