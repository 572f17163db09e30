import type { ListQuery } from "../../wire/resource.ts";
import type { ListPage, Resource } from "../store/resources.ts";
import type { KnowledgeBase } from "./knowledge-base.ts";
import { invalidField, Refusal, shown } from "./refusal.ts";

/** Page size for a cursor without a limit. */
const PAGE_DEFAULT = 100;
/** Characters read at a time while a list is sent. The last resource may exceed it: each may have up to 32 MB. */
const READ_CHARS = 8 * 1024 * 1024;
/** Most resources read from the store at a time. */
const READ_MAX = 1000;

/** Most UTF-8 bytes of one UTF-16 unit. */
const CHAR_BYTES = 3;

/** Accounts for the memory of a list's texts while the list is sent. */
export interface ListRoom {
  /** Reserves the bytes of the first part. May throw: nothing has been sent yet. */
  take(bytes: number): void;
  /** Waits until a later part of any length fits. */
  wait(bytesMax: number): Promise<void>;
  /** Sets the actual bytes of that part. */
  force(bytes: number): void;
}

/** A list in progress: resources by ascending id, then the cursor of the next page. */
export interface Listing {
  readonly resources: AsyncIterable<Resource>;
  readonly paginated: boolean;
  /** Null on the last page. Valid only after `resources` has been read to its end. */
  nextCursor(): string | null;
}

/**
 * Operation 6. Lists everything unless `limit` or `cursor` is sent. A resource that exists throughout is listed exactly once; one
 * that is created or deleted meanwhile may or may not be listed. Throws before the first resource, never after. `room` accounts
 * for the memory of the texts.
 */
export async function listResources(
  kb: KnowledgeBase,
  accountId: string,
  query: ListQuery,
  room?: ListRoom,
): Promise<Listing> {
  const tier = await kb.collections.tierOf(accountId, query.collectionId);
  if (tier === undefined) throw noCollection(query.collectionId, "collectionId");

  const paginated = query.limit !== undefined || query.cursor !== undefined;
  const limit = paginated ? (query.limit ?? PAGE_DEFAULT) : Infinity;
  let afterId = query.cursor === undefined ? undefined : readCursor(query.cursor);
  let more = false;

  const read = (count: number): Promise<ListPage> =>
    kb.records.listResources({
      accountId,
      collectionId: query.collectionId,
      ownerId: query.ownerId,
      afterId,
      deleted: query.deleted === "true",
      limit: count,
      charsMax: READ_CHARS,
    });

  async function* resources(): AsyncGenerator<Resource> {
    let left = limit;
    for (let isFirst = true; isFirst || (more && left > 0); isFirst = false) {
      if (!isFirst) await room?.wait(READ_CHARS * CHAR_BYTES + kb.limits.contentBytes);
      const part = await read(Math.min(READ_MAX, left));
      const bytes = part.resources.reduce((sum, resource) => sum + textBytes(resource), 0);
      if (isFirst) room?.take(bytes);
      else room?.force(bytes);
      yield* part.resources;
      left -= part.resources.length;
      afterId = part.resources.at(-1)?.id ?? afterId;
      more = part.more;
    }
  }

  return {
    resources: resources(),
    paginated,
    nextCursor: () => (more && afterId !== undefined ? writeCursor(afterId) : null),
  };
}

/** Returns the bytes of a resource's texts as sent; in memory they take at most as much. */
export function textBytes({ content, description }: Pick<Resource, "content" | "description">): number {
  return Buffer.byteLength(content) + Buffer.byteLength(description);
}

/** The refusal of a collection that this account does not have. */
export function noCollection(id: string, field: string): Refusal {
  return new Refusal("collection_not_found", `This key has no collection ${shown(id)}.`, {
    field,
    hint: "GET /api/rag/collections lists the collections of the key's account.",
  });
}

/** Returns the cursor of a page that ends with this resource. */
export function writeCursor(afterId: string): string {
  return Buffer.from(afterId).toString("base64url");
}

/** Returns the id in a cursor. Refuses what is none. */
export function readCursor(cursor: string): string {
  const id = Buffer.from(cursor, "base64url").toString("latin1");
  if (/^[0-9a-f]{24}$/.test(id)) return id;
  throw invalidField("cursor", `expected a nextCursor of an earlier answer, got ${shown(cursor)}`);
}
