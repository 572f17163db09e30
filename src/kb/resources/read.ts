import type { Tier } from "../../wire/primitives.ts";
import type { Resource } from "../store/store.ts";
import type { KnowledgeBase } from "./knowledge-base.ts";
import { noResource } from "./refusal.ts";

/** One live resource (an addition). */
export async function readResource(kb: KnowledgeBase, accountId: string, id: string): Promise<Resource> {
  const resource = await kb.store.resource({ accountId, id });
  if (resource === undefined) throw noResource(id);
  return resource;
}

/** One resource, live or in the account's books as deleted. */
export async function readAnyResource(kb: KnowledgeBase, accountId: string, id: string): Promise<Resource> {
  const at = { accountId, id };
  const resource = (await kb.store.resource(at)) ?? (await kb.store.deletedResource(at));
  if (resource === undefined) throw noResource(id);
  return resource;
}

/** The chunks of a resource as the wire writes them, in text order. */
export interface ChunkList {
  readonly resourceId: string;
  readonly version: number;
  readonly chunks: readonly {
    readonly id: string;
    /** UTF-16 offsets into the resource's content, end exclusive. */
    readonly start: number;
    readonly end: number;
    readonly headings: readonly string[];
    readonly content: string;
  }[];
}

/** All chunks of a live resource (an addition). */
export async function readChunks(kb: KnowledgeBase, accountId: string, id: string): Promise<ChunkList> {
  const found = await kb.store.chunks({ accountId, id });
  if (found === undefined) throw noResource(id);
  return {
    resourceId: id,
    version: found.version,
    chunks: found.chunks.map((chunk) => ({
      id: chunk.id,
      start: chunk.start,
      end: chunk.end,
      headings: chunk.headings,
      content: chunk.text,
    })),
  };
}

/** The account's three collections (an addition); `details` is the wire value of the tier. */
export async function readCollections(
  kb: KnowledgeBase,
  accountId: string,
): Promise<readonly { _id: string; details: Tier; resources: number; chunks: number }[]> {
  const collections = await kb.store.collections(accountId);
  return collections.map(({ id, tier, resources, chunks }) => ({
    _id: id,
    details: tier,
    resources,
    chunks,
  }));
}
