import { z } from "zod";
import type { DocumentsAnswer, DocumentsQuery } from "../../wire/documents.ts";
import type { ListPosition, Statuses } from "../store/search-index.ts";
import type { KnowledgeBase } from "./knowledge-base.ts";
import { noCollection } from "./list.ts";
import { invalidField, shown } from "./refusal.ts";

/** Lists an owner's documents in a collection, without their texts, and counts them (an addition). */
export async function listDocuments(
  kb: KnowledgeBase,
  accountId: string,
  { collectionId, ownerId, cursor, ...query }: DocumentsQuery,
): Promise<DocumentsAnswer["data"]> {
  const tier = await kb.collections.tierOf(accountId, collectionId);
  if (tier === undefined) throw noCollection(collectionId, "collectionId");
  const from = cursor === undefined ? undefined : readCursor(cursor);
  const page = await kb.index.documents({
    ...query,
    scope: { accountId, collectionId, ownerId: ownerId.toWellFormed() },
    after: from?.position,
  });
  // The counts of the first page travel in the cursor: other pages cost what they show.
  const statuses = from?.statuses ?? page.statuses ?? { queued: 0, chunked: 0, error: 0 };
  const { status } = query;
  const all = statuses.queued + statuses.chunked + statuses.error;
  return {
    documents: [...page.documents],
    total: status === undefined ? all : statuses[status],
    statuses,
    nextCursor: page.next === undefined ? null : writeCursor(page.next, statuses),
  };
}

const count = z.int().min(0);
/** The contents of a cursor: the position of the last document, and the counts. */
const Cursor = z.tuple([z.string(), z.string().regex(/^[0-9a-f]{24}$/), count, count, count]);

function writeCursor({ updatedAt, id }: ListPosition, { queued, chunked, error }: Statuses): string {
  const contents: z.infer<typeof Cursor> = [updatedAt, id, queued, chunked, error];
  return Buffer.from(JSON.stringify(contents)).toString("base64url");
}

function readCursor(cursor: string): { readonly position: ListPosition; readonly statuses: Statuses } {
  const read = Cursor.safeParse(jsonOf(Buffer.from(cursor, "base64url").toString()));
  if (!read.success)
    throw invalidField("cursor", `expected the nextCursor of the same query, got ${shown(cursor)}`);
  const [updatedAt, id, queued, chunked, error] = read.data;
  return { position: { updatedAt, id }, statuses: { queued, chunked, error } };
}

/** Returns undefined for what is no JSON. */
function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
