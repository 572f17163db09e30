import type { Chunking, ChunkRef } from "../../../src/kb/store/chunks.ts";
import type { NewResource, Resource, ResourceChange } from "../../../src/kb/store/resources.ts";
import type { ChunkContext, Index, LackingQuery } from "../../../src/kb/store/search-index.ts";
import type { Store } from "../../../src/kb/store/store.ts";
import type { Tier } from "../../../src/wire/primitives.ts";

/** A chunking with the vectors that a backfill puts afterwards: one item per span. An undefined item puts nothing. */
export interface Embedded extends Chunking {
  readonly vectors?: readonly (Float32Array | undefined)[] | undefined;
  readonly fingerprint?: string | undefined;
  readonly sentences?: readonly (readonly Float32Array[] | undefined)[] | undefined;
}

/** Creates a resource, and puts the vectors of its chunks. */
export async function createEmbedded(
  store: Pick<Store, "records" | "index">,
  resource: NewResource,
  chunking: Embedded,
): Promise<Resource> {
  const created = await store.records.createResource(resource, chunking);
  await putEmbedded(store, created, chunking);
  return created;
}

/** Updates a resource, and puts the vectors of its chunks. */
export async function updateEmbedded(
  store: Pick<Store, "records" | "index">,
  change: ResourceChange,
  chunking: Embedded | undefined,
): Promise<Resource | undefined> {
  const updated = await store.records.updateResource(change, chunking);
  if (updated !== undefined && chunking !== undefined) await putEmbedded(store, updated, chunking);
  return updated;
}

/** Puts the vectors of a resource's chunks. */
export async function putEmbedded(
  { records, index }: Pick<Store, "records" | "index">,
  at: Pick<Resource, "accountId" | "id">,
  { vectors = [], fingerprint, sentences = [] }: Embedded,
): Promise<void> {
  if (fingerprint === undefined) return;
  const chunks = (await records.chunks({ accountId: at.accountId, id: at.id }))?.chunks ?? [];
  const refs = chunks.map(({ ref }) => ref);
  const found = <T>(of: readonly (T | undefined)[]): { readonly ref: ChunkRef; readonly value: T }[] =>
    refs.flatMap((ref, nth) => {
      const value = of[nth];
      return value === undefined ? [] : [{ ref, value }];
    });
  await index.putVectors(
    fingerprint,
    found(vectors).map(({ ref, value }) => ({ ref, vector: value })),
  );
  const deep = found(sentences).map(({ ref, value }) => ({ ref, vectors: value }));
  if (deep.length > 0) await index.putSentences(fingerprint, deep);
}

const DEEP: readonly Tier[] = ["moderate", "high_accuracy"];

/** Returns chunks that lack vectors, in the order of their refs. */
export async function lackingChunks(
  index: Pick<Index, "embeddingScopes" | "chunksLacking">,
  fingerprint: string,
  { tiers = DEEP, lacks = "vectors" }: { tiers?: readonly Tier[]; lacks?: LackingQuery["lacks"] } = {},
): Promise<ChunkContext[]> {
  const scopes = (await index.embeddingScopes(tiers)).toSorted((a, b) => a.first - b.first);
  const found: ChunkContext[] = [];
  for (const { accountId, first, end } of scopes) {
    const range = { first, last: end - 1, limit: 100_000 };
    found.push(...(await index.chunksLacking({ accountId, lacks, fingerprint, ...range })));
  }
  return found;
}
