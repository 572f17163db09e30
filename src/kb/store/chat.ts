import type { Lease, NewJob } from "../queue/queue.ts";
import type { SameTransaction } from "./request-note.ts";
import type { StoredFile, ThreadKey } from "./records.ts";
import type { NewDelivery } from "./webhooks.ts";

/**
 * Agents, and what is remembered of the threads they talk in. Promises:
 *
 * - A turn is written whole: question, answer, its images, the end of its job and the message that tells of it, or none.
 * - With an agent go its threads; a turn of an agent that is gone is not written.
 */
export interface ChatStore {
  /** Throws `agent_exists`, and `too_many_agents` at `agentsMax`. */
  addAgent(agent: StoredAgent, agentsMax: number): Promise<void>;
  /** False: no such agent. */
  changeAgent(agent: Omit<StoredAgent, "createdAt">): Promise<boolean>;
  /** Its threads go with it, unless `keepsThreads`. False: no such agent. */
  removeAgent(at: AgentKey & { readonly keepsThreads: boolean }): Promise<boolean>;
  agent(at: AgentKey): Promise<StoredAgent | undefined>;
  /** By age. */
  agents(accountId: string): Promise<readonly StoredAgent[]>;

  /** What is remembered of a thread; nothing of one that is not there. */
  thread(query: ThreadQuery): Promise<ThreadMemory>;
  /** False: its job had ended before or its lease was lost, and nothing was written. Throws `agent_gone`. */
  addTurn(turn: NewTurn): Promise<boolean>;

  /** Puts a question into the queue `chat` and notes its request, whose answer names the job's name. Throws `queue_full`. */
  addQuestion(job: NewJob, sameTransaction?: Pick<SameTransaction, "request">): Promise<void>;

  /** Where a chunk that a search found stands. Undefined: it was replaced meanwhile. */
  passage(at: PassageKey): Promise<PassagePlace | undefined>;

  /** Removes turns and threads not used since then, a bounded part of them; answers how many rows. */
  purgeThreads(beforeIso: string, limit: number): Promise<number>;
  /** Lets go of images of threads linked before then; answers how many. Their files become unused ones. */
  purgeThreadImages(beforeIso: string, limit: number): Promise<number>;
}

export interface AgentKey {
  readonly accountId: string;
  readonly id: string;
}

export interface StoredAgent extends AgentKey {
  /** JSON text of its fields, which the store does not look at. */
  readonly body: string;
  readonly createdAt: string;
  readonly updatedAt: string;
}

export interface ThreadQuery extends ThreadKey {
  /** The newest so many turns at most. */
  readonly turnsMax: number;
  /** No more turns once they hold so many characters. */
  readonly charsMax: number;
  readonly imagesMax: number;
  /** Images linked before then are not given. */
  readonly imagesSinceIso: string;
}

export interface ThreadMemory {
  /** Oldest first. */
  readonly turns: readonly Turn[];
  /** Whether there are older ones. */
  readonly more: boolean;
  /** The newest first. */
  readonly images: readonly ThreadImage[];
}

/** An image that is linked to a thread. */
export interface ThreadImage extends StoredFile {
  /** Where in `turns` the question stands that it came with, 0 where that is older than all; undefined: none followed it. */
  readonly turnAt: number | undefined;
}

/** A question and its answer. */
export interface Turn {
  readonly user: string;
  readonly answer: string;
}

export interface NewTurn {
  readonly accountId: string;
  readonly agentId: string;
  readonly isStoredAgent: boolean;
  /** As of a link. */
  readonly agentCreatedAt?: string | undefined;
  /** Undefined: nothing is remembered. */
  readonly threadId: string | undefined;
  /** Of the answer. */
  readonly messageId: string;
  /** Undefined: the turn failed, and only its job ends. */
  readonly turn: Turn | undefined;
  /** Files that the store does not know yet. */
  readonly files: readonly StoredFile[];
  /** Tokens of the turn's images. */
  readonly images: readonly string[];
  readonly nowIso: string;
  /** The lease of the job whose work this is. */
  readonly job?: Lease;
  readonly delivery?: NewDelivery;
}

export interface PassageKey {
  readonly accountId: string;
  readonly resourceId: string;
  readonly chunkId: string;
  /** Where the search found it. */
  readonly row: number;
}

export interface PassagePlace {
  readonly title: string;
  /** UTF-16 offset of the chunk in the resource's content. */
  readonly start: number;
}
