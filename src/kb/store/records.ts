import type { Filter } from "../../wire/filter.ts";
import type { UserMetadata as Metadata } from "../../wire/metadata.ts";
import type { Settings, Strategy, Tier } from "../../wire/primitives.ts";
import type { WordMatch } from "../lexical/word-match.ts";

export interface Account {
  /** 24 hex digits. */
  readonly id: string;
  readonly name: string;
}

export type KeyScope = "read" | "write" | "chat" | "admin";

export interface KeyRecord {
  /** SHA-256 of the key, 64 hex digits. The key itself is stored nowhere. */
  readonly sha256: string;
  /** 24 hex digits; stays the same however often the key is put. */
  readonly id: string;
  /** The first characters of the key, by which people know it again; empty where they were not kept. */
  readonly hint: string;
  readonly accountId: string;
  readonly name: string;
  readonly scopes: readonly KeyScope[];
  readonly createdAt: string;
  /** ISO time from which the key is refused; null: never. */
  readonly expiresAt: string | null;
  /** ISO time since which the key is refused for good; null: it is not revoked. */
  readonly revokedAt: string | null;
}

export interface CollectionRecord {
  readonly id: string;
  readonly tier: Tier;
  /** Live resources and their chunks. */
  readonly resources: number;
  readonly chunks: number;
}

export interface ResourceKey {
  readonly accountId: string;
  readonly id: string;
}

/** The state that a change is made for: looked at in the transaction that makes it. */
export interface Expected {
  /** The `revision` that the resource must have; undefined: any. */
  readonly expectedRevision?: number;
}

/** Where the text came from: sent as content, an uploaded file, or a link. */
export type Origin = "content" | "file" | "link";

export interface NewResource extends ResourceKey {
  readonly tier: Tier;
  readonly ownerId: string;
  readonly origin: Origin;
  readonly title: string;
  readonly description: string;
  readonly url: string | null;
  /** The whole text: sent, or extracted from the file. */
  readonly content: string;
  readonly settings: Settings;
  readonly createdAt: string;
  /** Default: none. */
  readonly metadata?: Metadata;
  /** The uploaded file the url names, which is kept as long as a resource uses it. */
  readonly fileToken?: string | null;
}

/**
 * A chunk as a place in its text: UTF-16 offsets, end exclusive, `text.slice(start, end)` is the chunk.
 * `headings` is the path of Markdown headings above the chunk's first own character, outermost first.
 */
export interface Span extends Repeats {
  readonly start: number;
  readonly end: number;
  readonly headings: readonly string[];
}

/**
 * What a chunk repeats of the text around it, so that it can be read alone: `before` it the head of the table or the fence
 * of the code that it begins in, `after` it the fence that closes code. Neither is part of the offsets. Missing: nothing.
 */
export interface Repeats {
  readonly before?: string;
  readonly after?: string;
}

/** The result of ingest for one version of a text. Spans point into the content that is written with them. */
export interface Chunking {
  readonly spans: readonly Span[];
  /**
   * One unit vector a span, or none at all where the tier uses none or no model is there. Undefined for a span that has
   * had its vector in the version before: the store keeps it.
   */
  readonly vectors: readonly (Float32Array | undefined)[] | undefined;
  /** Fingerprint of the embedder that made the vectors. */
  readonly fingerprint: string | undefined;
  /** The vectors of the sentences of each span, by the same embedder, where the tier uses them and they are made already. */
  readonly sentences?: readonly (readonly Float32Array[] | undefined)[] | undefined;
  /** Where it is not the strategy of the settings. */
  readonly strategyUsed?: Strategy;
  /** What of the document its text does not hold, in words. */
  readonly warning?: string;
}

/** Fields to change; a missing one stays. `content` and `settings` come only together with a chunking. */
export interface ResourceChange extends ResourceKey, Expected {
  readonly title?: string;
  readonly description?: string;
  readonly url?: string;
  readonly content?: string;
  readonly settings?: Settings;
  /** Replaces what was there. */
  readonly metadata?: Metadata;
  readonly fileToken?: string | null;
  /** Becomes `refreshedAt` and `updatedAt`. */
  readonly nowIso: string;
  /** Ends a create that was answered before: `refreshedAt` stays null. */
  readonly completesCreate?: boolean;
  /** The text that is there was found to be right: an earlier `error` is over. A chunking says so by itself. */
  readonly clearsError?: boolean;
}

export interface Resource extends Omit<NewResource, "fileToken"> {
  readonly collectionId: string;
  readonly metadata: Metadata;
  /** Times chunked, from 1; 0 until the text of a resource created in the background is there. */
  readonly version: number;
  /** Grows with every change of the record. */
  readonly revision: number;
  readonly chunkCount: number;
  readonly refreshedAt: string | null;
  readonly updatedAt: string;
  readonly isDeleted: boolean;
  readonly status: ResourceStatus;
  /** Why the last text could not be taken in; null unless the status is `error`. */
  readonly statusMessage: string | null;
  /** The code of that, one of those in docs/API.md; null too where it was before codes were kept. */
  readonly statusError: string | null;
  /** How the chunks came about; null where there are none yet. */
  readonly strategyUsed: Strategy | null;
  /** What of the document the text that is there does not hold, in words; null: nothing that is known. */
  readonly warning: string | null;
}

/** `queued`: a job waits; `error`: the last one failed, and what is searchable is the version before. */
export type ResourceStatus = "queued" | "chunked" | "error";

export interface ListQuery {
  readonly accountId: string;
  readonly collectionId: string;
  readonly ownerId: string;
  readonly afterId: string | undefined;
  /** The deleted ones, without text, in place of the others. */
  readonly deleted?: boolean;
  /** 1 – 1000. */
  readonly limit: number;
  /** The page ends with the resource whose text reaches this many characters, however many were asked for. */
  readonly charsMax: number;
}

export interface ListPage {
  /** At least one where there is one. */
  readonly resources: readonly Resource[];
  /** Whether there are resources behind the last one. */
  readonly more: boolean;
}

export interface ChunksQuery extends ResourceKey {
  /** Chunks left out at the beginning. Default: none. */
  readonly offset?: number;
  /** Default: all. */
  readonly limit?: number;
}

/** Chunks of one version of a resource. */
export interface VersionChunks {
  readonly version: number;
  readonly chunks: readonly Chunk[];
  /** Whether there are chunks behind the last one. */
  readonly more: boolean;
}

export interface Chunk extends Repeats {
  /** Store-wide row number of the chunk: chunks of one resource version are consecutive. */
  readonly row: number;
  /** UUID. */
  readonly id: string;
  readonly start: number;
  readonly end: number;
  readonly headings: readonly string[];
  /** `before`, the text between `start` and `end`, `after`. */
  readonly text: string;
}

export interface FoundChunk extends Chunk {
  readonly resourceId: string;
  /** Of the resource. */
  readonly title: string;
  readonly collectionId: string;
  readonly ownerId: string;
  readonly version: number;
}

/** What a search looks through: one resource, or one owner's part of a collection. Part of the index look-up. */
export type Scope = (
  | { readonly accountId: string; readonly resourceId: string }
  | { readonly accountId: string; readonly collectionId: string; readonly ownerId: string }
) & {
  /** Only resources whose metadata fits. */
  readonly filter?: Filter;
};

export interface LexicalQuery {
  readonly scope: Scope;
  readonly query: string;
  /** Hits wanted, 1 – 1000. */
  readonly limit: number;
}

export interface LexicalHits {
  /** By descending score, ties by row. */
  readonly hits: readonly LexicalHit[];
  /**
   * The BM25 a chunk would reach that held every query word as often as saturation allows, words that stand nowhere
   * included: the sum of weight × (k1 + 1). 0 when no word of the query is known.
   */
  readonly ceiling: number;
}

export interface LexicalHit {
  readonly row: number;
  /** By the scope's own statistics: to be compared among the hits of one query only. */
  readonly bm25: number;
  /** The same for this chunk and query in every collection. */
  readonly match: WordMatch;
}

/** What a chunk holds of a query's words. */
export interface RowMatch {
  readonly row: number;
  readonly match: WordMatch;
}

export interface NearestQuery {
  readonly scope: Scope;
  readonly vector: Float32Array;
  readonly fingerprint: string;
  readonly limit: number;
}

export interface EvidenceQuery {
  readonly scope: Scope;
  readonly lexical: Omit<LexicalQuery, "scope">;
  readonly nearest: Omit<NearestQuery, "scope"> | undefined;
  /** Hits by words, the first ones, whose cosines are told where they are not among the nearest. */
  readonly depth: number;
  readonly withChunks: boolean;
}

export interface Evidence {
  readonly lexical: LexicalHits;
  /** Chunks of the owner's part of the collection, filtered out or not. */
  readonly scopeChunks: number;
  /** Undefined where it was not asked for. */
  readonly nearest: readonly VectorHit[] | undefined;
  /** Cosines of hits by words that are not among the nearest; one without a vector is left out. */
  readonly others: readonly VectorHit[];
  /** Words of the nearest that are not among the hits by words. */
  readonly nearestMatches: readonly RowMatch[];
  /** Of every hit, each once, in no order; none where they were not asked for. */
  readonly chunks: readonly FoundChunk[];
}

export interface VectorHit {
  readonly row: number;
  /** [-1, 1]. */
  readonly cosine: number;
}

export interface RowText {
  readonly row: number;
  readonly text: string;
}

/** A chunk to be embedded, with what stands above it. */
export interface RowContext extends RowText {
  readonly title: string;
  readonly headings: readonly string[];
  /** Set where its document was retitled and no vector of the new title came since: goes to `putVectors` with its vector. */
  readonly staleSince?: number;
}

export interface RowVector {
  readonly row: number;
  readonly vector: Float32Array;
  /** As it was with the text: the vector is refused where the document was retitled since. */
  readonly staleSince?: number | undefined;
}

export interface StoredFile {
  /** 256 random bits in base64url: whoever knows it can read the file. */
  readonly token: string;
  readonly accountId: string;
  /** As uploaded, made safe for a header. */
  readonly name: string;
  /** Found from the bytes. */
  readonly mediaType: string;
  /** What its sender called it, in lower case; how text is read depends on it. Null: nothing was said, or it was long ago. */
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
  /** The agent is a row of the store and can go with its threads: then it must still be there. */
  readonly isStoredAgent: boolean;
  /** Its `createdAt`: one that was made anew under the same id is another one. */
  readonly agentCreatedAt?: string | undefined;
  readonly nowIso: string;
}
