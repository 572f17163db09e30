import type { ListQuery } from "../../wire/resource.ts";
import type { ListPage, Resource } from "../store/records.ts";
import type { KnowledgeBase } from "./knowledge-base.ts";
import { invalidField, Refusal, shown } from "./refusal.ts";

/** Page length when a cursor comes without a limit. */
const PAGE_DEFAULT = 100;
/** Text read at once while a list goes out, in characters, and one resource more: each may have up to 32 MB. */
const READ_CHARS = 8 * 1024 * 1024;
/** Most resources the store gives at once. */
const READ_MAX = 1000;

/** Most bytes of a character of those. */
const CHAR_BYTES = 3;

/** Where the texts of a list are counted while it goes out. */
export interface ListRoom {
  /** The first part has so many bytes. May throw: nothing is answered yet. */
  take(bytes: number): void;
  /** Room for a later part, however long it may be. */
  wait(bytesMax: number): Promise<void>;
  /** What that part has. */
  keep(bytes: number): void;
}

/** A list under way: resources by id ascending, and where the next page starts once they are through. */
export interface Listing {
  readonly resources: AsyncIterable<Resource>;
  readonly paginated: boolean;
  /** Null on the last page. Only valid when `resources` has been read to its end. */
  nextCursor(): string | null;
}

/**
 * Operation 6. Everything unless `limit` or `cursor` is sent. A resource that exists all the while is listed exactly
 * once; one made or deleted meanwhile may or may not be. Throws before the first resource, never after; `room` tells where
 * its texts are counted.
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
    kb.store.listResources({
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
      else room?.keep(bytes);
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

/** Bytes of a resource's texts as they are sent, and at least what they take here. */
export function textBytes({ content, description }: Pick<Resource, "content" | "description">): number {
  return Buffer.byteLength(content) + Buffer.byteLength(description);
}

/** No such collection for this account. */
export function noCollection(id: string, field: string): Refusal {
  return new Refusal("collection_not_found", `There is no collection ${shown(id)} for this key.`, {
    field,
    hint: "GET /api/rag/collections lists the collections of the key's account.",
  });
}

function writeCursor(afterId: string): string {
  return Buffer.from(afterId).toString("base64url");
}

function readCursor(cursor: string): string {
  const id = Buffer.from(cursor, "base64url").toString("latin1");
  if (/^[0-9a-f]{24}$/.test(id)) return id;
  throw invalidField("cursor", `expected a nextCursor of an earlier answer, got ${shown(cursor)}`);
}
