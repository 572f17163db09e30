import { createHash } from "node:crypto";
import type { UserMetadata } from "../../../wire/metadata.ts";
import { locationsWithin, type StoredLocation } from "../locations.ts";
import type { Chunk, TextVersion, VersionChunks } from "../chunks.ts";
import type { ChunkContext, FoundChunk } from "../search-index.ts";
import { readChunk } from "./parts.ts";
import type { ResourceRow } from "./records.ts";

/** A row of `chunk`. */
export interface ChunkRow {
  readonly row: number;
  readonly start: number;
  readonly line: number;
  readonly headings: string;
  readonly text: string;
}

/** A row of `chunk` with the number of its resource. */
export interface FoundRow extends ChunkRow {
  readonly resource: number;
}

/** The columns of a resource that its chunks are read with. */
type DocumentRow = Pick<
  ResourceRow,
  "id" | "version" | "first_row" | "sha256" | "url" | "locations" | "metadata"
>;

/** The columns of a resource that its found chunks are read with. */
export type FoundDocumentRow = DocumentRow & Pick<ResourceRow, "title" | "collection_id" | "owner_id">;

/** A document whose chunks are read. */
export interface FoundDocument {
  readonly row: DocumentRow;
  readonly locations: readonly StoredLocation[];
  readonly facts: Omit<FoundChunk, keyof Chunk>;
}

/** Returns chunks of a resource; `end` is the index of the chunk after them. */
export function versionChunks(
  resource: Pick<ResourceRow, keyof DocumentRow | "title" | "chunks">,
  rows: readonly ChunkRow[],
  end: number,
): VersionChunks {
  const locations = locationsIn(resource);
  const chunks = rows.map((row) => chunkOf(row, resource, locations));
  return { ...versionOf(resource), title: resource.title, chunks, more: end < resource.chunks };
}

/** Reads what the found chunks of a document share. */
export function foundDocument(row: FoundDocumentRow): FoundDocument {
  const { id, title, collection_id: collectionId, owner_id: ownerId } = row;
  const facts = { resourceId: id, title, collectionId, ownerId, ...versionOf(row) };
  return { row, locations: locationsIn(row), facts };
}

/** Converts the row of a found chunk. */
export function foundChunk(row: ChunkRow, document: FoundDocument): FoundChunk {
  return Object.assign(chunkOf(row, document.row, document.locations), document.facts);
}

function versionOf({ version, sha256, url, metadata }: DocumentRow): TextVersion {
  const { folderDescription, path } = JSON.parse(metadata) as UserMetadata; // written by this store from such an object
  return {
    version,
    sha256: sha256?.toString("hex"),
    url,
    ...(typeof path === "string" && { filePath: path }),
    ...(typeof folderDescription === "string" && { folderDescription }),
  };
}

function locationsIn({ locations }: DocumentRow): readonly StoredLocation[] {
  return locations === null ? [] : (JSON.parse(locations) as StoredLocation[]); // written by this store
}

function chunkOf(
  { row, start, line, headings, text }: ChunkRow,
  { id, version, first_row: firstRow }: DocumentRow,
  locations: readonly StoredLocation[],
): Chunk {
  const end = start + text.length;
  return Object.assign(readChunk(headings, text), {
    ref: row,
    id: chunkId(id, version, row - firstRow),
    start,
    end,
    line,
    locations: locationsWithin(locations, start, end),
  });
}

/**
 * Derives the id of a chunk, a UUID (version 8), from resource, version and index. It need not be stored, and the same
 * version of a resource always has the same ids.
 */
export function chunkId(resourceId: string, version: number, index: number): string {
  const bytes = createHash("sha256").update(`${resourceId}/${version}/${index}`).digest().subarray(0, 16);
  bytes.writeUInt8((bytes.readUInt8(6) & 0x0f) | 0x80, 6);
  bytes.writeUInt8((bytes.readUInt8(8) & 0x3f) | 0x80, 8);
  return bytes.toString("hex").replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
}

/** A chunk that lacks vectors, as the database has it. */
export interface LackingRow extends Omit<ChunkContext, "headings" | "staleSince"> {
  readonly headings: string;
  readonly staleSince: number | null;
}

/** Returns a chunk with what its vector is made of. */
export function contextOf({ staleSince, ...row }: LackingRow): ChunkContext {
  const { headings, text } = readChunk(row.headings, row.text);
  const context = { ...row, headings, text };
  return staleSince === null ? context : { ...context, staleSince };
}
