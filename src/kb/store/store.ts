import type { Tier } from "../../wire/primitives.ts";
import type { KbsyncError } from "../../lib/failure.ts";
import type { Lease, NewJob, Queue } from "../queue/queue.ts";
import type { BatchRecords } from "./batches.ts";
import type { ChangeRecords } from "./changes.ts";
import type { ChatRecords } from "./chat.ts";
import type { Claims } from "../queue/claims.ts";
import type { TokenBuckets } from "./token-buckets.ts";
import type { ErasureRecords } from "./erasure.ts";
import type { LinkFetch } from "./links.ts";
import type { SameTransaction, StoredAnswer } from "./request-note.ts";
import type {
  Account,
  Chunking,
  ChunksQuery,
  CollectionRecord,
  Expected,
  KeyChange,
  GrantRotation,
  KeyRecord,
  ListPage,
  ListQuery,
  NewResource,
  OwnerCounts,
  OwnersQuery,
  Resource,
  ResourceChange,
  ResourceKey,
  SessionRecord,
  StoredFile,
  VersionChunks,
} from "./records.ts";
import type { Notices } from "./notices.ts";
import type { Index } from "./search-index.ts";
import type { SpendingRecords } from "./spending.ts";
import type { UsageRecords } from "./usage.ts";
import type { WebhookRecords } from "./webhooks.ts";

/** The ports to one database. */
export interface Ports {
  readonly records: Records;
  readonly queue: Queue;
  readonly index: Index;
}

/** The storage of the service. */
export interface Store extends Ports {
  /** Undefined: one process at a time uses the store. */
  readonly claims?: Claims | undefined;
  /** Rates that the processes of the store share. Undefined: one process at a time uses it, and counts for itself. */
  readonly buckets?: TokenBuckets | undefined;
  /** Reads the clock of the database, which the processes that use the store share. Undefined: one process at a time uses it. */
  readonly clockMs?: ((this: void) => Promise<number>) | undefined;
  /** Announcements between the processes that use the store. Undefined: there is one process at a time. */
  readonly notices?: Notices;
  /** Why a part of the store does not work at present; it may recover by itself. Undefined: all parts work. */
  problem(this: void): KbsyncError | undefined;
  /**
   * Leaves nothing in the store's files of what was removed before, not in free space, in the log or in the index of words.
   * Writes wait for the last step, which takes space for a second copy of the store. Throws `disk_full`, and `store_busy` if a
   * long read prevents it; a repetition completes it. A database server frees space by itself: there this does nothing, and what was
   * removed stays in its log and its backups as long as its operator keeps them.
   */
  scrub(this: void): Promise<void>;
  /** Resolves after every started write has succeeded or failed. */
  close(): Promise<void>;
}

/**
 * The records of the service: accounts, keys, resources, files, threads, agents, endpoints. Each method is one transaction.
 * Promises (one contract suite, run on every implementation):
 *
 * - A write is durable when its promise resolves, and visible to every read started afterwards.
 * - Accounts are isolated: every read and write of a resource or file names the account and sees only its data.
 * - A write indexes the chunks that it stores (`Index`), and puts the jobs that follow from it into the queue, in its own
 *   transaction. So it does with the contents of `SameTransaction`.
 * - A write adds its change of a document to the feed (`ChangeRecords`) in its own transaction.
 * - Reads never wait for writes.
 */
export interface Records
  extends
    WebhookRecords,
    ChatRecords,
    ErasureRecords,
    SpendingRecords,
    UsageRecords,
    ChangeRecords,
    BatchRecords {
  /** Returns the account of this name; creates it if it does not exist. The embedded service uses the account `local`. */
  ensureAccount(name: string): Promise<Account>;
  /** All accounts, ordered by name. */
  accounts(): Promise<readonly Account[]>;
  /**
   * Stores a key by its hash. A known hash gets the new scopes, name and expiry. A new grant removes those of the account that
   * have ended, and of the same parent all but the 99 that were refreshed last.
   */
  putKey(key: KeyRecord): Promise<void>;
  /** A grant has the revocation and the expiry of the key that it was derived from, if these come first, and the scopes of both. */
  keyByHash(sha256: string): Promise<KeyRecord | undefined>;
  /**
   * Replaces the secrets of a grant and returns it. Undefined if there is no such grant, if it has ended, or if it never had this
   * refresh token. One that was replaced before revokes the grant, which is returned: somebody else has it.
   */
  rotateGrant(rotation: GrantRotation): Promise<KeyRecord | undefined>;
  /** All keys of the account, including revoked ones and grants, oldest first; grants as in `keyByHash`. */
  keys(accountId: string): Promise<readonly KeyRecord[]>;
  /** Returns undefined if the account has no such key. */
  changeKey(change: KeyChange): Promise<KeyRecord | undefined>;

  /**
   * Stores a session of the console, or replaces the one of the same hash. Removes those that ended before `nowMs`, and the
   * ones that end first if there are more than 1000.
   */
  putSession(session: SessionRecord, nowMs: number): Promise<void>;
  session(sha256: string): Promise<SessionRecord | undefined>;
  /** Removes a session. Of several calls at a time, one returns it and the others undefined. */
  takeSession(sha256: string): Promise<SessionRecord | undefined>;

  /** The account's three collections with their counts. They exist from the start, and their ids never change. */
  collections(accountId: string): Promise<readonly CollectionRecord[]>;
  /** Owners with at least one live resource, ordered by collection, then by owner. */
  owners(query: OwnersQuery): Promise<readonly OwnerCounts[]>;

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

  /** Returns the record of a deleted resource, without its text. */
  deletedResource(at: ResourceKey): Promise<Resource | undefined>;
  /** Removes the records of up to `limit` resources deleted before `beforeIso`. Returns how many. */
  purgeDeleted(beforeIso: string, limit: number): Promise<number>;

  /** Records an uploaded file whose bytes the `FileStore` has saved under `token`. */
  addFile(file: StoredFile, sameTransaction?: SameTransaction): Promise<void>;
  file(token: string): Promise<StoredFile | undefined>;
  /** Tokens of up to `limit` files that are older than `beforeIso` and unused since then. */
  unusedFiles(beforeIso: string, limit: number): Promise<readonly string[]>;
  /** Removes the record of such a file. Returns false if the file is in use again or gone. */
  removeUnusedFile(token: string, beforeIso: string): Promise<boolean>;

  /**
   * The result of the request noted under an idempotency key; undefined after 24 h. Until then a write with a note under the same key
   * throws `request_noted`, and does nothing.
   */
  recall(accountId: string, key: string, nowMs: number): Promise<StoredAnswer | undefined>;
  /** Removes up to `limit` of these results older than 24 hours. Returns how many. */
  sweepAnswers(nowMs: number, limit: number): Promise<number>;

  /**
   * Returns the latest fetch of an address for the account; addresses are spelled as by `linkAddress`. The oldest entries
   * are evicted above a bound, and an entry is removed when a resource of its address is deleted or gets another address.
   * A missing entry costs a full response at the next update of a resource of that address.
   */
  linkFetch(accountId: string, url: string): Promise<LinkFetch | undefined>;
  noteLinkFetch(fetch: LinkFetch): Promise<void>;
}

/** A job that ingests a resource. `jobKey` names its line, and its name is the resource's id. */
export type ResourceJob = Pick<NewJob, "body" | "fileToken" | "nowMs" | "jobsMax" | "charsMax">;
