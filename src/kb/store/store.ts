import type { Tier } from "../../wire/primitives.ts";
import type { KbsyncError } from "../../lib/failure.ts";
import type { Lease, NewJob, Queue } from "../queue/queue.ts";
import type { ChatStore } from "./chat.ts";
import type { DocumentStore } from "./documents.ts";
import type { KeyStore } from "./keys.ts";
import type { LinkStore } from "./links.ts";
import type { OwnerStore } from "./owners.ts";
import type { SameTransaction, StoredAnswer } from "./request-note.ts";
import type {
  Account,
  KeyRecord,
  CollectionRecord,
  ResourceKey,
  Expected,
  NewResource,
  Chunking,
  ResourceChange,
  Resource,
  ListQuery,
  ListPage,
  ChunksQuery,
  VersionChunks,
  FoundChunk,
  Scope,
  LexicalQuery,
  LexicalHits,
  NearestQuery,
  EvidenceQuery,
  Evidence,
  VectorHit,
  RowContext,
  RowVector,
  StoredFile,
} from "./records.ts";
import type { RetentionStore } from "./retention.ts";
import type { ModelStore } from "./models.ts";
import type { SentenceStore } from "./sentences.ts";
import type { WebhookStore } from "./webhooks.ts";

/**
 * The storage of the service. Promises (one contract suite, run on every implementation):
 *
 * - A write is durable when its promise resolves, and visible to every read started afterwards.
 * - A resource is searchable at one version completely or not at all, even after a crash at any byte.
 * - Accounts are isolated: every read and write of a resource, file or search names the account and sees only its data.
 * - Two chunks of equal text remain two chunks.
 * - Reads never wait for writes.
 * - The events of a resource and the contents of `SameTransaction` are part of the write's transaction.
 */
export interface Store
  extends
    WebhookStore,
    RetentionStore,
    KeyStore,
    LinkStore,
    OwnerStore,
    DocumentStore,
    SentenceStore,
    ModelStore,
    ChatStore {
  /** The queue in the same store: a job and its result are written in one transaction. */
  readonly queue: Queue;

  /** Returns the account of this name; creates it if it does not exist. The embedded service uses the account `local`. */
  ensureAccount(name: string): Promise<Account>;
  /** Stores a key by its hash. A known hash gets the new scopes, name and expiry. */
  putKey(key: KeyRecord): Promise<void>;
  keyByHash(sha256: string): Promise<KeyRecord | undefined>;

  /** The account's three collections with their counts. They exist from the start, and their ids never change. */
  collections(accountId: string): Promise<readonly CollectionRecord[]>;

  createResource(
    resource: NewResource,
    chunking: Chunking,
    sameTransaction?: SameTransaction,
  ): Promise<Resource>;
  /** Creates a resource without text, in the state `queued`, and the job that adds the text. Throws `queue_full`. */
  enqueueCreate(
    resource: NewResource,
    job: ResourceJob,
    sameTransaction?: SameTransaction,
  ): Promise<Resource>;
  /**
   * Changes fields, and the chunks if `chunking` is given (`version` then grows by 1). Returns undefined if the resource
   * does not exist. This, a delete and a queued update throw `precondition_failed` if the resource is not as expected.
   */
  updateResource(
    change: ResourceChange,
    chunking: Chunking | undefined,
    sameTransaction?: SameTransaction,
  ): Promise<Resource | undefined>;
  /** Queues a job after the others of its resource. Returns undefined if the resource does not exist. Throws `queue_full`. */
  enqueueUpdate(
    at: ResourceKey & Expected & { readonly nowIso: string },
    job: ResourceJob,
    sameTransaction?: SameTransaction,
  ): Promise<Resource | undefined>;
  /**
   * Ends a job of the queue `ingest` that failed: its resource gets the state `error`, and its previous version stays
   * searchable. Does nothing if the lease was lost.
   */
  failJob(
    job: Lease,
    failure: { readonly code: string; readonly message: string },
    nowIso: string,
  ): Promise<void>;
  /** Counts live resources in the state `error`; of one account, or of all. */
  failedResources(accountId: string | undefined): Promise<number>;
  /**
   * Soft delete: removes text, chunks and vectors at once; only the record without its text remains. The returned resource
   * still has the text. Returns undefined if the resource does not exist or is deleted already.
   */
  deleteResource(at: ResourceKey & Expected & { readonly nowIso: string }): Promise<Resource | undefined>;
  /** Returns undefined for a deleted resource too. */
  resource(at: ResourceKey): Promise<Resource | undefined>;
  /** The tier of a resource, without reading its text. Undefined: the resource does not exist or is deleted. */
  tierOf(at: ResourceKey): Promise<Tier | undefined>;
  /** One page of resources, ascending by id; `afterId` continues after a resource. Lists live or deleted ones. */
  listResources(query: ListQuery): Promise<ListPage>;
  /** Chunks of a resource in text order, with their version; by default all. Undefined: the resource does not exist. */
  chunks(query: ChunksQuery): Promise<VersionChunks | undefined>;

  /**
   * Chunks that contain words of the query in their text, their headings or the title of their resource, best first, by
   * BM25. The statistics are those of the owner's part of the collection, even in a search of one resource, so a chunk has
   * the same score in both. May miss a few of the best if very many chunks contain the words.
   */
  lexical(query: LexicalQuery): Promise<LexicalHits>;
  /**
   * Chunks nearest to a vector by cosine, best first, among those that have a vector of that fingerprint. May miss a few of
   * the true nearest (recall above 0.99); cosines are accurate to 0.002.
   */
  nearest(query: NearestQuery): Promise<readonly VectorHit[]>;
  /**
   * Collects what a search ranks by, from one snapshot: the results of `lexical` and `nearest`, and the cosines of hits that
   * only the words found. Chunks that are read later may have been replaced since. `withChunks` returns the chunks of all
   * hits from the same snapshot; it costs more, because most of them appear in no answer.
   */
  evidence(query: EvidenceQuery): Promise<Evidence>;
  /** The chunks of these rows, in the given order. Leaves out rows that no longer exist. */
  chunksByRow(scope: Scope, rows: readonly number[]): Promise<readonly FoundChunk[]>;

  /** Records an uploaded file whose bytes are in the file area under `token`. */
  addFile(file: StoredFile, sameTransaction?: SameTransaction): Promise<void>;
  file(token: string): Promise<StoredFile | undefined>;

  /** The result of the request noted under an idempotency key; undefined after 24 h. The first note under a key stays. */
  recall(accountId: string, key: string, nowMs: number): Promise<StoredAnswer | undefined>;

  /**
   * Returns up to `limit` chunks of collections of these tiers, ordered by row, that have no vector of this fingerprint or
   * one of an older title. Starts after row `afterRow` (default: at the first).
   */
  chunksWithoutVector(
    fingerprint: string,
    tiers: readonly Tier[],
    limit: number,
    afterRow?: number,
  ): Promise<readonly RowContext[]>;
  /** Ignores vectors of chunks that no longer exist or whose document was retitled since they were read. */
  putVectors(fingerprint: string, vectors: readonly RowVector[]): Promise<void>;

  /** Why a part of the store does not work at present; it may recover by itself. Undefined: all parts work. */
  problem(this: void): KbsyncError | undefined;
  /** Resolves after every started write has succeeded or failed. */
  close(): Promise<void>;
}

/** A job that ingests a resource. `jobKey` names its line, and its name is the resource's id. */
export type ResourceJob = Pick<NewJob, "body" | "fileToken" | "nowMs" | "jobsMax" | "charsMax">;
