import type { DocumentEntry } from "../../wire/documents.ts";
import type { Filter } from "../../wire/filter.ts";
import type { Tier } from "../../wire/primitives.ts";
import type { Pending } from "../../wire/search.ts";
import type { WordMatch } from "../lexical/word-match.ts";
import type { StoredLocation } from "./locations.ts";
import type { Chunk, ChunkRef, TextVersion } from "./chunks.ts";

/**
 * The index of the chunks' words and vectors. A write of `Records` indexes the chunks of a version in its own transaction.
 * Promises (one contract suite, run on every implementation):
 *
 * - A resource is found at one version completely or not at all, even after a crash at any byte.
 * - A search reads one snapshot of one scope, and its statistics are those of the owner's part of the collection.
 * - Accounts are isolated.
 * - Two chunks of equal text remain two chunks.
 * - Reads never wait for writes.
 *
 * The embedding model that serves an owner's part of a collection is the first model that gave it vectors, until all its
 * chunks have vectors of another one.
 */
export interface Index {
  /**
   * Collects what a search ranks by, from one snapshot. Chunks that are read later may have been replaced since.
   * `withChunks` returns the chunks of all hits from the same snapshot; it costs more, because most of them appear in no
   * answer.
   */
  evidence(query: EvidenceQuery): Promise<Evidence>;
  /** The chunks of these refs, in the given order. Leaves out chunks that no longer exist. */
  foundChunks(scope: Scope, refs: readonly ChunkRef[]): Promise<readonly FoundChunk[]>;
  /**
   * The texts around these chunks. Chunks that follow each other or overlap are in one text, so that no two texts overlap.
   * Leaves out chunks that no longer exist.
   */
  surroundings(query: SurroundingsQuery): Promise<readonly Surroundings[]>;
  /**
   * Scores the whole text of each chunk's document against the query; the tier `high_accuracy` ranks by it. Leaves out
   * chunks of long documents, which have many subjects.
   */
  documentMatches(query: DocumentQuery): Promise<readonly DocumentMatch[]>;
  /**
   * One page of a scope's documents, without their texts; with the first one, how many there are of each status. A page costs what it
   * shows, unless few documents match. Documents that change meanwhile may be counted as before or after.
   */
  documents(query: DocumentsQuery): Promise<DocumentsPage>;
  /** Counts the documents of a scope that wait to be read or embedded. Ignores the scope's filter. */
  pending(query: PendingQuery): Promise<Pending>;
  /** Scores the best sentence of each of these chunks. Leaves out chunks without sentence vectors of that fingerprint. */
  sentenceMatches(query: SentenceQuery): Promise<readonly SentenceMatch[]>;

  /** Returns the scopes of collections of these tiers that have chunks. */
  embeddingScopes(tiers: readonly Tier[]): Promise<readonly EmbeddingScope[]>;
  /**
   * Finds the documents that lack vectors among the next `EXAMINED_CHUNKS` chunks below the ref `before`, down to `first`, which lie
   * in one scope. A change of a text or title gives its chunks refs above all others of the scope.
   */
  documentsLacking(query: LackingQuery & { readonly before: ChunkRef }): Promise<Examined>;
  /** Returns the first `limit` chunks between `first` and `last` that lack vectors. */
  chunksLacking(
    query: LackingQuery & { readonly last: ChunkRef; readonly limit: number },
  ): Promise<readonly ChunkContext[]>;
  /** Ignores vectors of chunks that no longer exist or whose document was retitled since they were read. */
  putVectors(fingerprint: string, vectors: readonly ChunkVector[]): Promise<void>;
  /** Replaces the sentence vectors of these chunks. Ignores chunks that no longer exist. */
  putSentences(fingerprint: string, chunks: readonly ChunkSentences[]): Promise<void>;

  /** Fingerprint of the serving model; undefined if there is no vector yet. */
  servingFingerprint(scope: Scope): Promise<string | undefined>;
  /** Fingerprints of all models that serve somewhere. */
  servingFingerprints(): Promise<readonly string[]>;
  /**
   * Switches owners' parts of these tiers to the model of this fingerprint if no chunk of the part lacks a vector of it.
   * Each part switches atomically. Chunks in `except` may lack their vectors for good. Returns the number of parts
   * switched.
   */
  serveComplete(fingerprint: string, tiers: readonly Tier[], except: readonly ChunkRef[]): Promise<number>;
  /** Removes up to `limit` vectors of models that serve nowhere, except this fingerprint. Returns how many. */
  dropRetired(fingerprint: string, limit: number): Promise<number>;
}

/** The range of a search: one resource, or one owner's part of a collection. Applied within the index lookup. */
export type Scope = (
  | { readonly accountId: string; readonly resourceId: string }
  | { readonly accountId: string; readonly collectionId: string; readonly ownerId: string }
) & {
  /** Restricts the search to resources whose metadata matches. */
  readonly filter?: Filter;
};

export interface LexicalHits {
  /** By descending score, ties by ref. */
  readonly hits: readonly LexicalHit[];
  /**
   * BM25 of a chunk that contains every query word as often as saturation allows, including words that occur nowhere: the
   * sum of weight × (k1 + 1). 0 if no word of the query is known.
   */
  readonly ceiling: number;
}

export interface LexicalHit {
  readonly ref: ChunkRef;
  /** By the scope's own statistics: comparable only among the hits of one query. */
  readonly bm25: number;
  /** Depends on chunk and query only, not on the collection. */
  readonly match: WordMatch;
}

/** How a chunk matches the words of a query. */
export interface ChunkMatch {
  readonly ref: ChunkRef;
  readonly match: WordMatch;
}

export interface EvidenceQuery {
  readonly scope: Scope;
  readonly lexical: LexicalQuery;
  readonly nearest: NearestQuery | undefined;
  /** Number of first hits by words whose cosines are returned if they are not among the nearest. */
  readonly depth: number;
  readonly withChunks: boolean;
}

export interface LexicalQuery {
  readonly query: string;
  /** Hits wanted, 1 – 1000. */
  readonly limit: number;
}

export interface NearestQuery {
  readonly vector: Float32Array;
  readonly fingerprint: string;
  readonly limit: number;
}

export interface Evidence {
  /**
   * Chunks that contain words of the query in their text, their headings or the title of their resource, best first, by
   * BM25. The statistics are those of the owner's part of the collection, even in a search of one resource, so a chunk has
   * the same score in both. Exact: no chunk that scores more is missing.
   */
  readonly lexical: LexicalHits;
  /** Chunks of the owner's part of the collection, including those that the filter excludes. */
  readonly scopeChunks: number;
  /**
   * Chunks nearest to the vector by cosine, best first, among those that have a vector of that fingerprint. May miss a few
   * of the true nearest (recall above 0.99); cosines are accurate to 0.002. Undefined if not requested.
   */
  readonly nearest: readonly VectorHit[] | undefined;
  /** Cosines of hits by words that are not among the nearest. Leaves out chunks without a vector. */
  readonly others: readonly VectorHit[];
  /** Word matches of the nearest that are not among the hits by words. */
  readonly nearestMatches: readonly ChunkMatch[];
  /** The chunk of every hit, each once, unordered; empty if not requested. */
  readonly chunks: readonly FoundChunk[];
}

export interface VectorHit {
  readonly ref: ChunkRef;
  /** [-1, 1]. */
  readonly cosine: number;
}

export interface ChunkText {
  readonly ref: ChunkRef;
  readonly text: string;
}

/** Chunks that one call of `documentsLacking` examines: some milliseconds of a read. */
export const EXAMINED_CHUNKS = 1024;

/** A scope with chunks. */
export interface EmbeddingScope {
  readonly accountId: string;
  /** The lowest ref that a chunk of the scope can have, which identifies the scope, and the ref that its next chunk gets. */
  readonly first: ChunkRef;
  readonly end: ChunkRef;
  /** Time of the last change of a document. */
  readonly changedAt: string;
}

export interface LackingQuery {
  readonly accountId: string;
  /** `vectors`: there is none of this fingerprint, or only one of an older title; `sentences`: none of the chunk's sentences. */
  readonly lacks: "vectors" | "sentences";
  readonly fingerprint: string;
  readonly first: ChunkRef;
}

/** Result of `documentsLacking`. */
export interface Examined {
  /** Last written first. */
  readonly documents: readonly LackingDocument[];
  /** The lowest ref that was examined; `first` at the end. */
  readonly downTo: ChunkRef;
}

/** Chunks of one document. */
export interface LackingDocument {
  readonly first: ChunkRef;
  readonly last: ChunkRef;
  /** Number of chunks between them that lack vectors. */
  readonly chunks: number;
  /** Time of the last change of the document. */
  readonly changedAt: string;
}

/** A chunk to be embedded, with its title and headings. */
export interface ChunkContext extends ChunkText {
  readonly title: string;
  readonly headings: readonly string[];
  /** Set if its document was retitled and it has no vector of the new title yet. Pass it to `putVectors` with the vector. */
  readonly staleSince?: number;
}

export interface ChunkVector {
  readonly ref: ChunkRef;
  readonly vector: Float32Array;
  /** The value that came with the text: the vector is ignored if the document was retitled since. */
  readonly staleSince?: number | undefined;
}

export interface FoundChunk extends Chunk, TextVersion {
  readonly resourceId: string;
  /** Title of the resource. */
  readonly title: string;
  readonly collectionId: string;
  readonly ownerId: string;
}

export interface SurroundingsQuery {
  readonly scope: Scope;
  /** At most 100. */
  readonly refs: readonly ChunkRef[];
  /** Chunks on each side of each chunk. */
  readonly chunksMax: number;
  /** The chunk that reaches this many characters is the last one on its side. */
  readonly charsMax: number;
}

/** Chunks of one document, with all text between them. */
export interface Surroundings {
  /** The offset of `text` in the content of the resource. */
  readonly start: number;
  readonly text: string;
  /** Line of the content in which `text` starts, from 1. */
  readonly line: number;
  readonly locations: readonly StoredLocation[];
  /** The lines that the first chunk repeats: the opening fence of the code in which the text begins. */
  readonly before: string;
  /** The chunks, by ascending start and end. */
  readonly chunks: readonly Pick<Chunk, "ref" | "start" | "end">[];
}

export interface DocumentQuery {
  readonly scope: Scope;
  readonly query: string;
  /** At most 100. */
  readonly refs: readonly ChunkRef[];
}

export interface DocumentMatch {
  readonly ref: ChunkRef;
  /** Score of the document, from 0. Comparable only among the matches of one query. */
  readonly bm25: number;
  /** Number of chunks of the document, from 1. */
  readonly chunks: number;
}

/** A list of an owner's documents in a collection, the last changed first. */
export interface DocumentsQuery {
  readonly scope: { readonly accountId: string; readonly collectionId: string; readonly ownerId: string };
  readonly status?: DocumentEntry["status"] | undefined;
  /** Words that title, description, address or metadata contain, whatever their case. */
  readonly text?: string | undefined;
  /** Starts after this position. Undefined: at the first. */
  readonly after: ListPosition | undefined;
  readonly limit: number;
}

/** The position of a document in a list. It stays valid when the document is changed or deleted. */
export interface ListPosition {
  readonly updatedAt: string;
  readonly id: string;
}

export interface DocumentsPage {
  readonly documents: readonly DocumentEntry[];
  /** Position of the last one, if there are documents after it. */
  readonly next: ListPosition | undefined;
  /** Documents that match, whatever the status that was asked for. Undefined after the first page: counting costs more than a page. */
  readonly statuses: Statuses | undefined;
}

export type Statuses = Readonly<Record<DocumentEntry["status"], number>>;

/** Chunks without a vector of which the documents are counted, so that a search costs little while many wait. */
export const PENDING_CHUNKS_MAX = 10_000;

export interface PendingQuery {
  readonly scope: Scope;
  /** The model whose vectors the documents need; undefined: they need none. */
  readonly fingerprint: string | undefined;
}

export interface SentenceQuery {
  readonly scope: Scope;
  readonly vector: Float32Array;
  readonly fingerprint: string;
  readonly refs: readonly ChunkRef[];
}

export interface SentenceMatch {
  readonly ref: ChunkRef;
  /** Cosine of the sentence nearest to the vector, [-1, 1]; accurate to 0.02, because the vectors are stored coarsely. */
  readonly cosine: number;
}

export interface ChunkSentences {
  readonly ref: ChunkRef;
  /** Unit vectors; empty for a chunk without a sentence. */
  readonly vectors: readonly Float32Array[];
}
