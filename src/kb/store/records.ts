import type { UserMetadata as Metadata } from "../../wire/metadata.ts";
import type { Settings, Strategy, Tier } from "../../wire/primitives.ts";
import type { LocatedText } from "../../lib/markup/located-text.ts";
import type { StoredLocation } from "./locations.ts";

export interface Account {
  /** 24 hex digits. */
  readonly id: string;
  readonly name: string;
}

export type KeyScope = "read" | "write" | "chat" | "admin";

export interface KeyRecord {
  /** SHA-256 of the key, 64 hex digits. The key itself is not stored. */
  readonly sha256: string;
  /** 24 hex digits; does not change when the key is put again. */
  readonly id: string;
  /** The first characters of the key, for people to recognise it; empty if unknown. */
  readonly hint: string;
  readonly accountId: string;
  readonly name: string;
  readonly scopes: readonly KeyScope[];
  readonly createdAt: string;
  /** ISO time from which the key is refused; null: never. */
  readonly expiresAt: string | null;
  /** ISO time of the revocation, which is permanent; null: not revoked. */
  readonly revokedAt: string | null;
  /** Set for a grant: a key that was derived from another one. */
  readonly grant?: GrantFacts;
}

/** The fields that make a key a grant. It is valid as long as the key that it was derived from is, and then no longer than its own times. */
export interface GrantFacts {
  /** Id of the key that it was derived from, which is no grant itself. */
  readonly parentId: string;
  /** SHA-256 of the secret that all its refresh tokens share: a token without it was never one of the grant. */
  readonly familySha256: string;
  /** SHA-256 of its current refresh token, as of a key. */
  readonly refreshSha256: string;
  /** ISO time from which the key is refused until it is refreshed. `expiresAt` is the end of the refresh token. */
  readonly accessUntil: string;
}

/** New secrets of a grant. */
export interface GrantRotation {
  readonly id: string;
  /** Of the refresh token that was sent, and of the secret in it that all tokens of its grant share. */
  readonly sentSha256: string;
  readonly familySha256: string;
  readonly nowIso: string;
  readonly next: Pick<KeyRecord, "sha256" | "hint" | "expiresAt"> &
    Pick<GrantFacts, "refreshSha256" | "accessUntil">;
}

/** A session of the console, or a link that opens one. */
export interface SessionRecord {
  /** SHA-256 of its token, 64 hex digits. The token itself is not stored. */
  readonly sha256: string;
  /** The key that it stands for. */
  readonly keySha256: string;
  readonly kind: "session" | "link";
  /** Unix time from which it is refused. */
  readonly expiresMs: number;
}

/** The fields of a key that can change; a missing field stays as it is. */
export interface KeyChange extends ResourceKey {
  readonly name?: string;
  readonly scopes?: KeyRecord["scopes"];
  readonly expiresAt?: string | null;
  /** Cannot be cleared once set. */
  readonly revokedAt?: string;
}

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

/**
 * A chunk as a range of its text: UTF-16 offsets, end exclusive, `text.slice(start, end)` is the chunk.
 * `headings` is the path of Markdown headings above the chunk's first own character, outermost first.
 */
export interface Span extends Repeats {
  readonly start: number;
  readonly end: number;
  readonly headings: readonly string[];
}

/**
 * Text around a chunk that the chunk repeats, so that it can be read alone: `before` is the head of the table, or the fence
 * of the code, in which it begins; `after` is the fence that closes code. Neither is part of the offsets.
 */
export interface Repeats {
  readonly before?: string;
  readonly after?: string;
}

/** The result of ingest for one version of a text. Spans point into the content that is written with them. */
export interface Chunking {
  readonly spans: readonly Span[];
  /**
   * One unit vector per span; undefined if the tier uses none or no model is available. An undefined item is a span whose
   * vector the store keeps from the previous version.
   */
  readonly vectors: readonly (Float32Array | undefined)[] | undefined;
  /** Fingerprint of the model of the vectors. */
  readonly fingerprint: string | undefined;
  /** Vectors of the sentences of each span, by the same model; set if the tier uses them and they exist already. */
  readonly sentences?: readonly (readonly Float32Array[] | undefined)[] | undefined;
  /** Set if it is not the strategy of the settings. */
  readonly strategyUsed?: Strategy;
  /** Describes what is missing from the text of the document. */
  readonly warning?: string;
}

/** Fields to change; a missing field stays as it is. `content` and `settings` require a chunking. */
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

/** One version of a resource's text, with what its chunks are shown with. */
export interface TextVersion {
  readonly version: number;
  /** The string `path` of the resource's metadata: where its file is in the synced folder. */
  readonly filePath?: string;
  /** The string `folderDescription` of the resource's metadata: context for its chunks. */
  readonly folderDescription?: string;
  /** SHA-256 of the content as UTF-8, 64 hex digits; undefined for a text that an older release stored. */
  readonly sha256: string | undefined;
  /** Of a file or link resource, else null. */
  readonly url: string | null;
}

/** Chunks of one version of a resource. */
export interface VersionChunks extends TextVersion {
  /** Title of the resource. */
  readonly title: string;
  readonly chunks: readonly Chunk[];
  /** Whether there are chunks after the last one. */
  readonly more: boolean;
}

/**
 * Names a chunk of one version of a resource within the store. It has no meaning but its identity and its order, which is
 * the same in every read and breaks ties. It is never reused.
 */
export type ChunkRef = number;

export interface Chunk extends Repeats {
  readonly ref: ChunkRef;
  /** UUID. */
  readonly id: string;
  readonly start: number;
  readonly end: number;
  /** Line of the content in which the chunk starts, from 1; undefined for a chunk that an older release stored. */
  readonly line: number | undefined;
  /** Where the source file has the chunk; empty if that is unknown. */
  readonly locations: readonly StoredLocation[];
  readonly headings: readonly string[];
  /** `before`, the text between `start` and `end`, `after`. */
  readonly text: string;
}

export interface StoredFile {
  /** 256 random bits in base64url. Anyone who knows it can read the file. */
  readonly token: string;
  readonly accountId: string;
  /** Name as uploaded, made safe for a header. */
  readonly name: string;
  /** Detected from the bytes. */
  readonly mediaType: string;
  /** Media type that the sender declared, in lower case; decides how text is read. Null: none declared, or an old file. */
  readonly declaredType?: string | null;
  readonly sizeBytes: number;
  readonly sha256: string;
  readonly createdAt: string;
}

export interface ThreadKey {
  readonly accountId: string;
  readonly agentId: string;
  readonly threadId: string;
}

/** A link of an uploaded file to a thread. */
export interface ThreadLink extends ThreadKey {
  /** The agent is a row of the store, which can be removed with its threads: it must still exist. */
  readonly isStoredAgent: boolean;
  /** Its `createdAt`: an agent created again under the same id is another agent. */
  readonly agentCreatedAt?: string | undefined;
  readonly nowIso: string;
}
