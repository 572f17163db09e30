import type { Strategy } from "../../wire/primitives.ts";
import type { StoredLocation } from "./locations.ts";

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
  /** Set if it is not the strategy of the settings. */
  readonly strategyUsed?: Strategy;
  /** Describes what is missing from the text of the document. */
  readonly warning?: string;
}

/** One version of a resource's text, with what its chunks are shown with. */
export interface TextVersion {
  readonly version: number;
  /** The string `path` of the resource's metadata: where its file is in the synced folder. */
  readonly filePath?: string;
  /** The string `folderDescription` of the resource's metadata: context for its chunks. */
  readonly folderDescription?: string;
  /** SHA-256 of the content as UTF-8, 64 hex digits; undefined without a text. */
  readonly sha256: string | undefined;
  /** Address of a file or link resource; null for any other. */
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
  /** Line of the content in which the chunk starts, from 1. */
  readonly line: number;
  /** Where the source file has the chunk; empty if that is unknown. */
  readonly locations: readonly StoredLocation[];
  readonly headings: readonly string[];
  /** `before`, the text between `start` and `end`, `after`. */
  readonly text: string;
}
