import type { Tier } from "../../../../wire/primitives.ts";
import type { Inside } from "../../methods.ts";
import type { CollectionRecord, Resource } from "../../resources.ts";
import type { StoredAnswer } from "../../request-note.ts";
import { ANSWER_TTL_MS } from "../../rows/request-notes.ts";
import type { Connection } from "../database/connection.ts";
import { resourceOf, SELECT_RESOURCE, type ResourceRow } from "../../rows/records.ts";
import { prepareChunkReads, type ChunkReads } from "./chunk-reads.ts";
import { readContent } from "./content.ts";

/** Reads of resources and stored answers. */
export type Lookups = Pick<
  Inside<"read" | "lookup">["records"],
  "collections" | "resource" | "failedResources" | "tierOf" | "deletedResource" | "listResources" | "recall"
> &
  ChunkReads;

/** Prepares the statements on a connection of either kind. */
export function prepareLookups(db: Connection): Lookups {
  const selectCollections = db.prepare<[string], CollectionRecord>(`
    SELECT collection.id, tier, ifnull(sum(scope.resources), 0) AS resources, ifnull(sum(scope.chunks), 0) AS chunks
    FROM collection LEFT JOIN scope ON scope.collection_id = collection.id
    WHERE account_id = ? GROUP BY collection.id
    ORDER BY CASE tier WHEN 'fastest' THEN 0 WHEN 'moderate' THEN 1 ELSE 2 END`);
  const selectResource = db.prepare<[string, string], ResourceRow>(
    `${SELECT_RESOURCE} WHERE resource.id = ? AND resource.account_id = ? AND is_deleted = 0`,
  );
  const selectTier = db
    .prepare<[string, string], Tier>(`
    SELECT tier FROM resource JOIN scope ON scope.number = resource.scope JOIN collection ON collection.id = collection_id
    WHERE resource.id = ? AND resource.account_id = ? AND is_deleted = 0`)
    .pluck();
  const selectDeleted = db.prepare<[string, string], ResourceRow>(
    `${SELECT_RESOURCE} WHERE resource.id = ? AND resource.account_id = ? AND is_deleted = 1`,
  );
  const selectPageOf = (isDeleted: 0 | 1) =>
    db.prepare<[string, string, string, string, number], ResourceRow>(`${SELECT_RESOURCE}
    WHERE resource.scope = (SELECT number FROM scope WHERE collection_id = ? AND owner_id = ?)
      AND resource.account_id = ? AND is_deleted = ${isDeleted} AND resource.id > ?
    ORDER BY resource.id LIMIT ?`);
  const selectPage = selectPageOf(0);
  const selectDeletedPage = selectPageOf(1);
  const selectAnswer = db.prepare<[string, string, number], StoredAnswer>(`
    SELECT body_sha256 AS bodySha256, status, body FROM kept_answer WHERE account_id = ? AND key = ? AND kept_ms > ?`);
  const selectFailed = db
    .prepare<object, number>(
      "SELECT count(*) FROM resource WHERE status = 'error' AND is_deleted = 0 AND (@accountId IS NULL OR account_id = @accountId)",
    )
    .pluck();
  const content = readContent(db);

  return {
    collections: (accountId) => selectCollections.all(accountId),
    failedResources: (accountId) => selectFailed.get({ accountId: accountId ?? null }) ?? 0,
    resource(at) {
      const row = selectResource.get(at.id, at.accountId);
      return row === undefined ? undefined : resourceOf(row, content.of(row));
    },
    tierOf: ({ accountId, id }) => selectTier.get(id, accountId),
    deletedResource(at) {
      const row = selectDeleted.get(at.id, at.accountId);
      return row === undefined ? undefined : resourceOf(row, "");
    },
    listResources({ accountId, collectionId, ownerId, afterId, limit, charsMax, deleted }) {
      const page = deleted === true ? selectDeletedPage : selectPage;
      const resources: Resource[] = [];
      let chars = 0;
      // One row more than the limit shows whether there are more.
      for (const row of page.iterate(collectionId, ownerId, accountId, afterId ?? "", limit + 1)) {
        if (resources.length === limit || chars >= charsMax) return { resources, more: true };
        const resource = resourceOf(row, content.of(row));
        resources.push(resource);
        chars += resource.content.length + resource.title.length + resource.description.length;
      }
      return { resources, more: false };
    },
    ...prepareChunkReads(db),
    recall: (accountId, key, nowMs) => selectAnswer.get(accountId, key, nowMs - ANSWER_TTL_MS),
  };
}
