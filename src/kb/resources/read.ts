import type { ChunksAnswer } from "../../wire/answers.ts";
import type { OwnerEntry, OwnersQuery } from "../../wire/owners.ts";
import type { Tier } from "../../wire/primitives.ts";
import { pathOf, positionOf } from "../search/position.ts";
import type { Records } from "../store/records.ts";
import type { Chunk, VersionChunks } from "../store/chunks.ts";
import type { Resource, ResourceKey } from "../store/resources.ts";
import type { KnowledgeBase } from "./knowledge-base.ts";
import { noResource, Refusal } from "./refusal.ts";

/** Reads a live resource (an addition). */
export async function readResource(kb: KnowledgeBase, accountId: string, id: string): Promise<Resource> {
  const resource = await kb.records.resource({ accountId, id });
  if (resource === undefined) throw noResource(id);
  return resource;
}

/** Reads a resource, live or deleted. */
export async function readAnyResource(kb: KnowledgeBase, accountId: string, id: string): Promise<Resource> {
  const at = { accountId, id };
  const resource = (await kb.records.resource(at)) ?? (await kb.records.deletedResource(at));
  if (resource === undefined) throw noResource(id);
  return resource;
}

/** Throws `version_gone` if a resource has another version than a reader wants: only the current text is stored. */
export function refuseOtherVersion(has: number, wanted: number | undefined): void {
  if (wanted === undefined || wanted === has) return;
  throw new Refusal(
    "version_gone",
    `The resource has version ${has}; the text of version ${wanted} is not stored.`,
    {
      field: "version",
      hint: "Search again. If sha256 of the old citation is that of the current text, its offsets are still right.",
    },
  );
}

/** The chunks of a resource in the wire format, in text order. */
export type ChunkList = ChunksAnswer["data"];

/**
 * Chunks read at a time, a megabyte at most. A long document has tens of thousands: searches would wait while all of them are read,
 * and all requests while they arrive in this thread.
 */
const CHUNKS_READ = 256;
/** How often a document may change while its chunks are read in parts, before they are read at once. */
const CHANGES_MAX = 3;

/** Reads all chunks of one version of a live resource (an addition). */
export async function readChunks(kb: KnowledgeBase, accountId: string, id: string): Promise<ChunkList> {
  const found = await chunksOfVersion(kb.records, { accountId, id });
  if (found === undefined) throw noResource(id);
  const { version, title, sha256, url, filePath, folderDescription, chunks } = found;
  return {
    resourceId: id,
    version,
    title,
    ...(sha256 !== undefined && { sha256 }),
    ...(url !== null && { fileUrl: url }),
    ...(filePath !== undefined && { filePath }),
    ...(folderDescription !== undefined && { folderDescription }),
    chunks: chunks.map((chunk) => wireChunk(chunk, title)),
  };
}

function wireChunk(chunk: Chunk, title: string): ChunkList["chunks"][number] {
  const { id, headings, before, after, text: content } = chunk;
  const repeats = { ...(before !== undefined && { before }), ...(after !== undefined && { after }) };
  const path = pathOf({ title, headings });
  return { id, ...positionOf(chunk), headings: [...headings], path, content, ...repeats };
}

async function chunksOfVersion(
  records: Pick<Records, "chunks">,
  at: ResourceKey,
): Promise<Omit<VersionChunks, "more"> | undefined> {
  for (let changes = 0; changes < CHANGES_MAX; changes++) {
    let part = await records.chunks({ ...at, limit: CHUNKS_READ });
    if (part === undefined) return undefined;
    const { chunks: first, more: _, ...text } = part;
    const { version } = text;
    const chunks = [...first];
    while (part?.version === version && part.more) {
      part = await records.chunks({ ...at, offset: chunks.length, limit: CHUNKS_READ });
      if (part?.version === version) chunks.push(...part.chunks);
    }
    if (part?.version === version) return { ...text, chunks };
  }
  return records.chunks(at);
}

/** Reads a page of the owners with resources in the account's collections (an addition). */
export async function readOwners(
  kb: KnowledgeBase,
  accountId: string,
  { limit, cursor }: OwnersQuery,
): Promise<{ readonly owners: readonly OwnerEntry[]; readonly nextCursor: string | null }> {
  const after = cursor === undefined ? undefined : readOwnerCursor(cursor);
  // One extra row shows whether there are more.
  const found = await kb.records.owners({ accountId, after, limit: limit + 1 });
  const page = found.slice(0, limit);
  return {
    owners: page.map(({ ownerId, collectionId, tier, resources, chunks }) => ({
      ownerId,
      collectionId,
      details: tier,
      resources,
      chunks,
    })),
    nextCursor: found.length > limit ? ownerCursor(page.at(-1)) : null,
  };
}

/** Returns the cursor of the next page. It contains nothing that the page did not show. */
function ownerCursor(last: Pick<OwnerEntry, "collectionId" | "ownerId"> | undefined): string | null {
  if (last === undefined) return null;
  return `${last.collectionId}.${Buffer.from(last.ownerId).toString("base64url")}`;
}

function readOwnerCursor(cursor: string): { readonly collectionId: string; readonly ownerId: string } {
  const [collectionId = "", owner = ""] = cursor.split(".", 2);
  return { collectionId, ownerId: Buffer.from(owner, "base64url").toString() };
}

/** Reads the account's three collections (an addition). `details` is the tier in the wire format. */
export async function readCollections(
  kb: KnowledgeBase,
  accountId: string,
): Promise<readonly { _id: string; details: Tier; resources: number; chunks: number }[]> {
  const collections = await kb.records.collections(accountId);
  return collections.map(({ id, tier, resources, chunks }) => ({
    _id: id,
    details: tier,
    resources,
    chunks,
  }));
}
