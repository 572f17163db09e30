import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import type { UserMetadata } from "../../../../wire/metadata.ts";
import type { RowRange } from "../../../index/rows.ts";
import { locationsWithin, type StoredLocation } from "../../locations.ts";
import type { Inside } from "../../methods.ts";
import type { Chunk, TextVersion } from "../../records.ts";
import type { FoundChunk } from "../../search-index.ts";
import type { Connection } from "../database/connection.ts";
import { readChunk } from "../../rows/parts.ts";
import { SELECT_RESOURCE, type ResourceRow } from "../../rows/records.ts";

/** Reads of chunks. */
export type ChunkReads = Pick<Inside<"read" | "lookup">["records"], "chunks"> & {
  /** Chunks of the rows within the range, in the given order. Leaves out missing rows. */
  readonly foundChunks: (range: RowRange, rows: readonly number[]) => FoundChunk[];
};

interface ChunkRow {
  readonly row: number;
  readonly start: number;
  readonly line: number | null;
  readonly headings: string;
  readonly text: string;
}

interface FoundRow extends ChunkRow {
  readonly resource: number;
}

/** The columns of a resource that its chunks are read with. */
type DocumentRow = Pick<
  ResourceRow,
  "id" | "version" | "first_row" | "sha256" | "url" | "locations" | "metadata"
>;

type FoundDocumentRow = DocumentRow & Pick<ResourceRow, "title" | "collection_id" | "owner_id">;

/** A document whose chunks are read. */
interface FoundDocument {
  readonly row: DocumentRow;
  readonly locations: readonly StoredLocation[];
  readonly facts: Omit<FoundChunk, keyof Chunk>;
}

/** Prepares the statements on a connection of either kind. */
export function prepareChunkReads(db: Connection): ChunkReads {
  const selectResource = db.prepare<[string, string], ResourceRow>(
    `${SELECT_RESOURCE} WHERE resource.id = ? AND resource.account_id = ? AND is_deleted = 0`,
  );
  const selectChunks = db.prepare<[number, number], ChunkRow>(
    "SELECT row, start, line, headings, text FROM chunk WHERE row BETWEEN ? AND ? ORDER BY row",
  );
  const selectFound = db.prepare<[number], FoundRow>(
    "SELECT row, start, line, headings, text, resource FROM chunk WHERE row = ?",
  );
  // Subqueries, because a join takes several times as long.
  const ofScope = (field: string): string => `(SELECT ${field} FROM scope WHERE number = resource.scope)`;
  const selectDocument = db.prepare<[number], FoundDocumentRow>(`
    SELECT id, title, version, first_row, sha256, url, locations, metadata, ${ofScope("collection_id")} AS collection_id,
      ${ofScope("owner_id")} AS owner_id
    FROM resource WHERE number = ?`);

  return {
    chunks({ accountId, id, offset = 0, limit = Infinity }) {
      const resource = selectResource.get(id, accountId);
      if (resource === undefined) return undefined;
      const end = Math.min(offset + limit, resource.chunks);
      const rows = selectChunks.all(resource.first_row + offset, resource.first_row + end - 1);
      const locations = locationsIn(resource);
      const chunks = rows.map((row) => chunkOf(row, resource, locations));
      return { ...versionOf(resource), title: resource.title, chunks, more: end < resource.chunks };
    },
    foundChunks: (range, rows) => {
      // Results often share a document, whose locations may take longer to read than the chunk.
      const documents = new Map<number, FoundDocument>();
      return rows.flatMap((number) => {
        const row = number < range.first || number > range.last ? undefined : selectFound.get(number);
        if (row === undefined) return [];
        let document = documents.get(row.resource);
        if (document === undefined) {
          const found = selectDocument.get(row.resource);
          assert(found !== undefined, `chunk ${number} belongs to no resource`);
          const { id, title, collection_id: collectionId, owner_id: ownerId } = found;
          const facts = { resourceId: id, title, collectionId, ownerId, ...versionOf(found) };
          document = { row: found, locations: locationsIn(found), facts };
          documents.set(row.resource, document);
        }
        return Object.assign(chunkOf(row, document.row, document.locations), document.facts);
      });
    },
  };
}

function versionOf({ version, sha256, url, metadata }: DocumentRow): TextVersion {
  const { folderDescription } = JSON.parse(metadata) as UserMetadata; // written by this store from such an object
  return {
    version,
    sha256: sha256?.toString("hex"),
    url,
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
    line: line ?? undefined,
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
