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
 * Where the service keeps what it knows. Promises (one contract suite, run on every implementation):
 *
 * - A write is durable when its promise resolves, and visible to every read started afterwards.
 * - A resource is wholly searchable at one version or not at all, through a crash at any byte.
 * - Accounts never meet: every read and write of a resource, file or search names the account and sees only its own.
 * - Two chunks of equal text stay two chunks.
 * - Reads never wait for writes.
 * - What a write takes alongside, and the events of a resource, are part of its transaction.
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
  /** The queue of the work that the store keeps; jobs and what comes of them are written together. */
  readonly queue: Queue;

  /** Makes the account when it is new. The built-in account of the embedded service is `local`. */
  ensureAccount(name: string): Promise<Account>;
  /** Remembers a key by its hash; the same hash again replaces scopes, name and expiry. */
  putKey(key: KeyRecord): Promise<void>;
  keyByHash(sha256: string): Promise<KeyRecord | undefined>;

  /** The account's three collections with their counts; ids are stable, the collections exist from the first call. */
  collections(accountId: string): Promise<readonly CollectionRecord[]>;

  createResource(
    resource: NewResource,
    chunking: Chunking,
    sameTransaction?: SameTransaction,
  ): Promise<Resource>;
  /** Makes a resource without text, in the state `queued`, and the job that brings the text. Throws `queue_full`. */
  enqueueCreate(
    resource: NewResource,
    job: ResourceJob,
    sameTransaction?: SameTransaction,
  ): Promise<Resource>;
  /**
   * Changes fields, and the chunks when `chunking` is given (then `version` grows by 1). Undefined: no such resource.
   * This, a delete and a queued update throw `precondition_failed` where the resource is not as expected.
   */
  updateResource(
    change: ResourceChange,
    chunking: Chunking | undefined,
    sameTransaction?: SameTransaction,
  ): Promise<Resource | undefined>;
  /** Puts a job behind the others of its resource. Undefined: no such resource. Throws `queue_full`. */
  enqueueUpdate(
    at: ResourceKey & Expected & { readonly nowIso: string },
    job: ResourceJob,
    sameTransaction?: SameTransaction,
  ): Promise<Resource | undefined>;
  /**
   * Ends a job of the queue `ingest` that cannot be done: its resource has the state `error`, and what it was before stays
   * searchable. Does nothing where the lease was lost.
   */
  failJob(
    job: Lease,
    failure: { readonly code: string; readonly message: string },
    nowIso: string,
  ): Promise<void>;
  /** Live resources in the state `error`; of one account, or of all. */
  failedResources(accountId: string | undefined): Promise<number>;
  /**
   * Soft delete: text, chunks and vectors go at once, only the record without its text stays. The answer still carries
   * the text. Undefined: no such resource, or deleted already.
   */
  deleteResource(at: ResourceKey & Expected & { readonly nowIso: string }): Promise<Resource | undefined>;
  /** Undefined for a deleted resource as well. */
  resource(at: ResourceKey): Promise<Resource | undefined>;
  /** The tier that a resource is in, without a look at its text. Undefined: no such resource, or a deleted one. */
  tierOf(at: ResourceKey): Promise<Tier | undefined>;
  /** Resources by id ascending, deleted ones left out. One page; `afterId` continues behind a resource. */
  listResources(query: ListQuery): Promise<ListPage>;
  /** Chunks of a resource in text order, with the version they are of; all unless told. Undefined: no such resource. */
  chunks(query: ChunksQuery): Promise<VersionChunks | undefined>;

  /**
   * Chunks with words of the query, in their text, their headings or the title of their resource, best first, scored by
   * BM25. The statistics are those of the owner's part of the collection, in the search of one resource too: a chunk has
   * the same score in both. Where very many chunks hold the words, a few of the best may be missed.
   */
  lexical(query: LexicalQuery): Promise<LexicalHits>;
  /**
   * Chunks nearest to a vector by cosine, best first. Only chunks that have a vector of that fingerprint. May miss a few of
   * the true nearest (recall above 0.99), and a cosine may be off by 0.002.
   */
  nearest(query: NearestQuery): Promise<readonly VectorHit[]>;
  /**
   * What a search ranks by, of one state and by one call: what `lexical` and `nearest` answer, and the cosines of what only
   * the words found. Chunks that are read afterwards may have been replaced meanwhile; those of all hits come along where
   * they are asked for, which costs more, for no answer shows most of them.
   */
  evidence(query: EvidenceQuery): Promise<Evidence>;
  /** The chunks of these row ids, in the order asked; one that is gone is left out. */
  chunksByRow(scope: Scope, rows: readonly number[]): Promise<readonly FoundChunk[]>;

  /** Notes an uploaded file whose bytes lie in the file area under `token`. */
  addFile(file: StoredFile, sameTransaction?: SameTransaction): Promise<void>;
  file(token: string): Promise<StoredFile | undefined>;

  /** What the request noted under an idempotency key did; undefined after 24 h. The first note under a key stays. */
  recall(accountId: string, key: string, nowMs: number): Promise<StoredAnswer | undefined>;

  /**
   * Chunks in collections of these tiers that have no vector of this fingerprint, or one of an older title, behind row
   * `afterRow` (default: all), by row, up to `limit`.
   */
  chunksWithoutVector(
    fingerprint: string,
    tiers: readonly Tier[],
    limit: number,
    afterRow?: number,
  ): Promise<readonly RowContext[]>;
  /** Leaves out vectors of chunks that are gone or whose document was retitled since they were read. */
  putVectors(fingerprint: string, vectors: readonly RowVector[]): Promise<void>;

  /** Why a part of the store does not work at present, though it may by itself in a while; undefined: all do. */
  problem(this: void): KbsyncError | undefined;
  /** Every write that was begun is answered, done or failed, before this resolves. */
  close(): Promise<void>;
}

/** A job that takes a resource in. Its line is named by `jobKey`, and its name is the resource's id. */
export type ResourceJob = Pick<NewJob, "body" | "fileToken" | "nowMs" | "jobsMax" | "charsMax">;
