import type { CollectionRecord, OwnerCounts, Resource } from "../../resources.ts";
import { versionChunks, type ChunkRow } from "../../rows/chunks.ts";
import { resourceOf, SELECT_RESOURCE, type ResourceRow } from "../../rows/records.ts";
import type { Records } from "../../records.ts";
import type { Tier } from "../../../../wire/primitives.ts";
import type { Transaction } from "../database/connections.ts";
import { readContent } from "./chunks.ts";
import { readRow } from "./rows.ts";

/** Rows of a list that are read at once: the page may end before the next ones. */
const PAGE_ROWS = 100;

/** Reads of resources, collections and owners in one snapshot. */
export function resourceReadsOn(
  tx: Transaction,
): Pick<
  Records,
  | "collections"
  | "owners"
  | "resource"
  | "tierOf"
  | "deletedResource"
  | "failedResources"
  | "listResources"
  | "chunks"
> {
  return {
    collections: (accountId) =>
      tx.all<CollectionRecord>(
        `SELECT collection.id, tier, coalesce(sum(scope.resources), 0) AS resources,
          coalesce(sum(scope.chunks), 0) AS chunks
        FROM collection LEFT JOIN scope ON scope.collection_id = collection.id
        WHERE account_id = @accountId GROUP BY collection.id
        ORDER BY CASE tier WHEN 'fastest' THEN 0 WHEN 'moderate' THEN 1 ELSE 2 END`,
        { accountId },
      ),
    owners: ({ accountId, after, limit }) =>
      tx.all<OwnerCounts>(
        `SELECT owner_id AS "ownerId", collection_id AS "collectionId", tier, resources, chunks
        FROM scope JOIN collection ON collection.id = scope.collection_id
        WHERE account_id = @accountId AND (collection_id, owner_id) > (@collectionId, @ownerId) AND resources > 0
        ORDER BY collection_id, owner_id LIMIT @limit`,
        { accountId, collectionId: after?.collectionId ?? "", ownerId: after?.ownerId ?? "", limit },
      ),
    resource: async (at) => {
      const row = await readRow(tx, at);
      return row === undefined ? undefined : resourceOf(row, await readContent(tx, row));
    },
    tierOf: async ({ accountId, id }) => {
      const found = await tx.get<{ tier: Tier }>(
        `SELECT tier FROM resource JOIN scope ON scope.number = resource.scope
          JOIN collection ON collection.id = collection_id
        WHERE resource.id = @id AND resource.account_id = @accountId AND NOT is_deleted`,
        { accountId, id },
      );
      return found?.tier;
    },
    deletedResource: async ({ accountId, id }) => {
      const row = await tx.get<ResourceRow>(
        `${SELECT_RESOURCE} WHERE resource.id = @id AND resource.account_id = @accountId AND is_deleted`,
        { accountId, id },
      );
      return row === undefined ? undefined : resourceOf(row, "");
    },
    failedResources: async (accountId) => {
      const found = await tx.get<{ failed: number }>(
        `SELECT count(*) AS failed FROM resource
        WHERE status = 'error' AND NOT is_deleted AND (@accountId::text IS NULL OR account_id = @accountId)`,
        { accountId },
      );
      return found?.failed ?? 0;
    },
    listResources: (query) => listResources(tx, query),
    async chunks({ accountId, id, offset = 0, limit = Infinity }) {
      const resource = await readRow(tx, { accountId, id });
      if (resource === undefined) return undefined;
      const end = Math.min(offset + limit, resource.chunks);
      const rows = await tx.all<ChunkRow>(
        `SELECT row, start, line, headings, text FROM chunk
        WHERE account_id = @accountId AND row BETWEEN @first AND @last ORDER BY row`,
        { accountId, first: resource.first_row + offset, last: resource.first_row + end - 1 },
      );
      return versionChunks(resource, rows, end);
    },
  };
}

async function listResources(
  tx: Transaction,
  {
    accountId,
    collectionId,
    ownerId,
    afterId = "",
    limit,
    charsMax,
    deleted = false,
  }: Parameters<Records["listResources"]>[0],
): ReturnType<Records["listResources"]> {
  const resources: Resource[] = [];
  let chars = 0;
  for (let after = afterId; ;) {
    // One row more than the limit shows whether there are more.
    const size = Math.min(PAGE_ROWS, limit + 1 - resources.length);
    const rows = await tx.all<ResourceRow>(
      `${SELECT_RESOURCE}
      WHERE resource.scope = (SELECT number FROM scope WHERE collection_id = @collectionId AND owner_id = @ownerId)
        AND resource.account_id = @accountId AND is_deleted = @deleted AND resource.id > @after
      ORDER BY resource.id LIMIT @size`,
      { collectionId, ownerId, accountId, deleted, after, size },
    );
    for (const row of rows) {
      if (resources.length === limit || chars >= charsMax) return { resources, more: true };
      const resource = resourceOf(row, await readContent(tx, row));
      resources.push(resource);
      chars += resource.content.length + resource.title.length + resource.description.length;
      after = row.id;
    }
    if (rows.length < size) return { resources, more: false };
  }
}
