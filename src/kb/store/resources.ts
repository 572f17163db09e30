import type { LocatedText } from "../../formats/markup/located-text.ts";
import type { UserMetadata as Metadata } from "../../wire/metadata.ts";
import type { Settings, Strategy, Tier } from "../../wire/primitives.ts";
import type { Lease, NewJob } from "../queue/queue.ts";
import type { Chunking, VersionChunks } from "./chunks.ts";
import type { Failure, SameTransaction } from "./request-note.ts";

/** Collections, resources and their chunks. */
export interface ResourceRecords {
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
  /**
   * Queues a change of a resource, or merges it into the one that waits. A running one loses its lease, and the merged change runs again.
   * Returns undefined if the resource does not exist. Throws `queue_full`, and `invalid_field` as `mergeJobs` does.
   */
  enqueueUpdate(
    at: ResourceKey & Expected & { readonly nowIso: string },
    job: ResourceJob,
    sameTransaction?: SameTransaction,
  ): Promise<Resource | undefined>;
  /**
   * Ends a job of the queue `ingest` that failed: its resource gets the state `error`, and its previous version stays
   * searchable. Does nothing if the lease was lost.
   */
  failJob(job: Lease, failure: Failure, nowIso: string): Promise<void>;
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
}

/** A job that ingests a resource. Its name is the resource's id, and its body a `JobBody`. */
export type ResourceJob = Pick<NewJob, "body" | "fileToken" | "nowMs" | "jobsMax" | "charsMax">;

export interface CollectionRecord {
  readonly id: string;
  readonly tier: Tier;
  /** Number of live resources and of their chunks. */
  readonly resources: number;
  readonly chunks: number;
}

export interface ResourceKey {
  readonly accountId: string;
  readonly id: string;
}

/** One owner's part of a collection, with the counts of what is live in it. */
export interface OwnerCounts {
  readonly ownerId: string;
  readonly collectionId: string;
  readonly tier: Tier;
  readonly resources: number;
  readonly chunks: number;
}

/** A page of an account's owners. */
export interface OwnersQuery {
  readonly accountId: string;
  /** The page starts after this one; undefined: at the first. */
  readonly after: Pick<OwnerCounts, "collectionId" | "ownerId"> | undefined;
  readonly limit: number;
}

/** The state that a change expects. Checked in the transaction of the change. */
export interface Expected {
  /** The `revision` that the resource must have; undefined: any. */
  readonly expectedRevision?: number;
  /** The version and the title that a new chunking was made from; undefined: any. */
  readonly basedOn?: Pick<Resource, "version" | "title">;
}

/** The origin of the text: sent as content, an uploaded file, or a link. */
export type Origin = "content" | "file" | "link";

export interface NewResource extends ResourceKey {
  readonly tier: Tier;
  readonly ownerId: string;
  readonly origin: Origin;
  readonly title: string;
  readonly description: string;
  readonly url: string | null;
  /** The whole text: as sent, or extracted from the file. */
  readonly content: string;
  /** Where the source file has the parts of `content`. Default: unknown. */
  readonly locations?: LocatedText["locations"];
  readonly settings: Settings;
  readonly createdAt: string;
  /** Default: none. */
  readonly metadata?: Metadata;
  /** Found by filters beside `metadata`, which overrides it. Default: none. */
  readonly fileMetadata?: Metadata | undefined;
  /** The uploaded file that the url names. It stays as long as a resource uses it. */
  readonly fileToken?: string | null;
}

/** Fields to change; a missing field stays as it is. `content` requires a chunking, and so do `settings` if there is a text. */
export interface ResourceChange extends ResourceKey, Expected {
  readonly title?: string;
  readonly description?: string;
  readonly url?: string;
  readonly content?: string;
  /** Where the source file has the parts of the new `content`. Default: unknown. */
  readonly locations?: LocatedText["locations"];
  /** The metadata of the file of the new `content`. Default: none. */
  readonly fileMetadata?: Metadata | undefined;
  readonly settings?: Settings;
  /** Replaces all metadata but the file's. */
  readonly metadata?: Metadata;
  readonly fileToken?: string | null;
  /** Becomes `refreshedAt` and `updatedAt`. */
  readonly nowIso: string;
  /** Completes a create that was answered earlier: `refreshedAt` stays null. */
  readonly completesCreate?: boolean;
  /** The current text was verified: clears an earlier `error`. A chunking clears it too. */
  readonly clearsError?: boolean;
}

export interface Resource extends Omit<NewResource, "fileToken" | "locations" | "fileMetadata"> {
  readonly collectionId: string;
  /** With that of its file. */
  readonly metadata: Metadata;
  /** Number of chunkings, from 1; 0 while a resource created in the background has no text. */
  readonly version: number;
  /** Grows with every change of the record. */
  readonly revision: number;
  readonly chunkCount: number;
  readonly refreshedAt: string | null;
  readonly updatedAt: string;
  readonly isDeleted: boolean;
  readonly status: ResourceStatus;
  /** Why the last ingest failed; null unless the status is `error`. */
  readonly statusMessage: string | null;
  /** The code of that failure, one of those in docs/API.md; null also for failures from before codes were stored. */
  readonly statusError: string | null;
  /** The strategy that made the chunks; null if there are none yet. */
  readonly strategyUsed: Strategy | null;
  /** Describes what is missing from the current text of the document; null: nothing known. */
  readonly warning: string | null;
}

/** `queued`: a job waits; `error`: the last job failed, and the previous version is searchable. */
export type ResourceStatus = "queued" | "chunked" | "error";

export interface ListQuery {
  readonly accountId: string;
  readonly collectionId: string;
  readonly ownerId: string;
  readonly afterId: string | undefined;
  /** Lists deleted resources, without text, instead of live ones. */
  readonly deleted?: boolean;
  /** 1 – 1000. */
  readonly limit: number;
  /** The page ends with the resource that reaches this many characters, even below `limit`. */
  readonly charsMax: number;
}

export interface ListPage {
  /** At least one if there is one. */
  readonly resources: readonly Resource[];
  /** Whether there are resources after the last one. */
  readonly more: boolean;
}

export interface ChunksQuery extends ResourceKey {
  /** Number of chunks to skip. Default: 0. */
  readonly offset?: number;
  /** Default: all. */
  readonly limit?: number;
}
