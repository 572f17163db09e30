import assert from "node:assert/strict";
import type { RowRange } from "../../../index/rows.ts";
import type { Inside } from "../../methods.ts";
import {
  foundChunk,
  foundDocument,
  versionChunks,
  type ChunkRow,
  type FoundDocument,
  type FoundDocumentRow,
  type FoundRow,
} from "../../rows/chunks.ts";
import { SELECT_RESOURCE, type ResourceRow } from "../../rows/records.ts";
import type { FoundChunk } from "../../search-index.ts";
import type { Connection } from "../database/connection.ts";

/** Reads of chunks. */
export type ChunkReads = Pick<Inside<"read" | "lookup">["records"], "chunks"> & {
  /** Chunks of the rows within the range, in the given order. Leaves out missing rows. */
  readonly foundChunks: (range: RowRange, rows: readonly number[]) => FoundChunk[];
};

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
      return versionChunks(resource, rows, end);
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
          document = foundDocument(found);
          documents.set(row.resource, document);
        }
        return foundChunk(row, document);
      });
    },
  };
}
