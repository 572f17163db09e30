import type { DocumentsAnswer, DocumentsQuery } from "../../wire/documents.ts";
import type { KnowledgeBase } from "./knowledge-base.ts";
import { noCollection, readCursor, writeCursor } from "./list.ts";

/** Lists an owner's documents in a collection, without their texts, and counts them (an addition). */
export async function listDocuments(
  kb: KnowledgeBase,
  accountId: string,
  { collectionId, ownerId, filter, cursor, order, ...query }: DocumentsQuery,
): Promise<DocumentsAnswer["data"]> {
  const tier = await kb.collections.tierOf(accountId, collectionId);
  if (tier === undefined) throw noCollection(collectionId, "collectionId");
  const whole = { accountId, collectionId, ownerId: ownerId.toWellFormed() };
  const { documents, more, statuses } = await kb.index.documents({
    ...query,
    scope: filter === undefined ? whole : { ...whole, filter },
    descending: order === "desc",
    afterId: cursor === undefined ? undefined : readCursor(cursor),
  });
  const { status } = query;
  const all = statuses.queued + statuses.chunked + statuses.error;
  const last = more ? documents.at(-1) : undefined;
  return {
    documents: [...documents],
    total: status === undefined ? all : statuses[status],
    statuses,
    nextCursor: last === undefined ? null : writeCursor(last._id),
  };
}
