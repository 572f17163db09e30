import { dimensionsOf, dotQuantized } from "../../../index/quantized.ts";
import { rowOf, rowsOfScope, type RowRange } from "../../../index/rows.ts";
import { bestSentence } from "../../../index/sentence-codes.ts";
import { rescoredCount } from "../../search/code-cache.ts";
import type { NearestQuery, SentenceMatch, VectorHit } from "../../search-index.ts";
import type { Transaction } from "../database/connections.ts";
import type { Target } from "../scopes/target.ts";
import { findCandidates } from "./hnsw.ts";
import { openCodes, readVectors, type PartitionCache } from "./partitions.ts";

/** Returns the number of a model; undefined: it has made no vector yet. */
export async function findModel(tx: Transaction, fingerprint: string): Promise<number | undefined> {
  const found = await tx.get<{ number: number }>(
    "SELECT number FROM embedding_model WHERE fingerprint = @fingerprint",
    { fingerprint },
  );
  return found?.number;
}

/**
 * Returns the nearest chunks, best first: scans the 1-bit codes of a scope in memory, or asks the index that a large scope may have, then
 * computes exact cosines of the best. If few chunks are searched, it computes all.
 */
export async function findNearest(
  tx: Transaction,
  cache: PartitionCache,
  target: Target,
  { fingerprint, vector, limit }: NearestQuery,
): Promise<VectorHit[]> {
  const { accountId, scope, range, rangeChunks, allowed } = target;
  const model = await findModel(tx, fingerprint);
  if (model === undefined) return [];
  const count = rescoredCount(limit);
  const base = rowOf(scope, 0);
  const of = { accountId, model };
  const few = allowed?.within({ first: range.first - base, last: range.last - base }, count);
  let hits: VectorHit[];
  if (few !== undefined && few.length <= count) {
    const rows = few.map((sequence) => base + sequence);
    hits = cosines(await readRows(tx, of, rows), vector);
  } else if (rangeChunks <= count && allowed === undefined) {
    hits = cosines(await readVectors(tx, of, [range]), vector);
  } else {
    // An index of a scope has nothing of filters, or of single documents.
    const isWhole = range.last === rowsOfScope(scope).last && allowed === undefined;
    const mayHaveIndex = isWhole && rangeChunks >= cache.hnswChunksMin / 2;
    const candidates = mayHaveIndex ? await findCandidates(tx, { ...of, scope }, vector, count) : undefined;
    hits =
      candidates === undefined
        ? await scan(tx, cache, target, of, vector, count)
        : cosines(candidates, vector);
  }
  return hits.sort((a, b) => b.cosine - a.cosine || a.ref - b.ref).slice(0, limit);
}

/** Finds the chunks whose codes are nearest, and computes their cosines. */
async function scan(
  tx: Transaction,
  cache: PartitionCache,
  target: Target,
  of: { readonly accountId: string; readonly model: number },
  vector: Float32Array,
  count: number,
): Promise<VectorHit[]> {
  const opened = await openCodes(tx, cache, target, of.model);
  if (opened === undefined) return [];
  const { codes, other, isUnchanged } = opened;
  const { scope, range, allowed } = target;
  const base = rowOf(scope, 0);
  const passes = (row: number): boolean =>
    row >= range.first && row <= range.last && allowed?.has(row - base) !== false;
  const isOther = (row: number): boolean =>
    other.ranges.some(({ first, last }) => row >= first && row <= last);
  const isAllowed =
    allowed === undefined && other.ranges.length === 0
      ? undefined
      : (row: number): boolean => passes(row) && !isOther(row);
  const hits = cosines(
    other.vectors.filter(([row]) => passes(row)),
    vector,
  );
  const slotOf = new Map<number, number>();
  // Without a pause: the slots are those of this moment.
  for (const slot of codes.nearest(vector, range.first, range.last, count, isAllowed)) {
    const row = codes.rowAt(slot);
    const cosine = codes.cosineAt(slot, vector);
    if (cosine === undefined) slotOf.set(row, slot);
    else hits.push({ ref: row, cosine });
  }
  const read = slotOf.size === 0 ? [] : await readRows(tx, of, [...slotOf.keys()]);
  for (const [row, value] of read) {
    hits.push({ ref: row, cosine: dotQuantized(vector, value) });
    const slot = slotOf.get(row);
    if (slot !== undefined && isUnchanged()) codes.cache(slot, value);
  }
  return hits;
}

function cosines(vectors: readonly (readonly [number, Buffer])[], vector: Float32Array): VectorHit[] {
  return vectors.map(([row, value]) => ({ ref: row, cosine: dotQuantized(vector, value) }));
}

/** Reads the vectors of rows. */
async function readRows(
  tx: Transaction,
  { accountId, model }: { readonly accountId: string; readonly model: number },
  rows: readonly number[],
): Promise<[number, Buffer][]> {
  const found = await tx.all<{ readonly row: number; readonly value: Buffer }>(
    "SELECT row, value FROM chunk_vector WHERE account_id = @accountId AND row = ANY (@rows::bigint[]) AND model = @model",
    { accountId, model, rows },
  );
  return found.map(({ row, value }) => [row, value]);
}

/** Returns the cosines of those rows that have a vector, in their order. */
export async function cosinesOf(
  tx: Transaction,
  { accountId, range }: { readonly accountId: string; readonly range: RowRange },
  fingerprint: string,
  vector: Float32Array,
  rows: readonly number[],
): Promise<VectorHit[]> {
  const wanted = rows.filter((row) => row >= range.first && row <= range.last);
  const model = wanted.length === 0 ? undefined : await findModel(tx, fingerprint);
  if (model === undefined) return [];
  const valueOf = new Map(await readRows(tx, { accountId, model }, wanted));
  return wanted.flatMap((ref) => {
    const value = valueOf.get(ref);
    if (value === undefined || dimensionsOf(value) !== vector.length) return [];
    return { ref, cosine: dotQuantized(vector, value) };
  });
}

/** Scores the best sentence of rows, in their order. */
export async function sentenceMatches(
  tx: Transaction,
  { accountId, range }: Pick<Target, "accountId" | "range">,
  fingerprint: string,
  vector: Float32Array,
  rows: readonly number[],
): Promise<SentenceMatch[]> {
  const wanted = rows.filter((row) => row >= range.first && row <= range.last);
  const found = await tx.all<{ readonly row: number; readonly vectors: Buffer }>(
    `SELECT row, vectors FROM sentence_vectors WHERE account_id = @accountId AND row = ANY (@wanted::bigint[])
      AND model = (SELECT number FROM embedding_model WHERE fingerprint = @fingerprint)`,
    { accountId, wanted, fingerprint },
  );
  const packedOf = new Map(found.map(({ row, vectors }) => [row, vectors]));
  return wanted.flatMap((ref) => {
    const packed = packedOf.get(ref);
    const cosine = packed && bestSentence(vector, packed);
    return cosine === undefined ? [] : { ref, cosine };
  });
}
