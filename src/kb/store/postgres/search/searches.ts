import type { QueryWords } from "../../../lexical/word-match.ts";
import {
  foundChunk,
  foundDocument,
  type FoundDocument,
  type FoundDocumentRow,
  type FoundRow,
} from "../../rows/chunks.ts";
import { scoreDocuments, type IndexedDocument } from "../../search/document-words.ts";
import { matchRows, searchLexical } from "../../search/lexical.ts";
import { noEvidence } from "../../search/search-target.ts";
import type { Evidence, EvidenceQuery, FoundChunk, Index } from "../../search-index.ts";
import type { Transaction } from "../database/connections.ts";
import { cosinesOf, findNearest, sentenceMatches } from "../vectors/nearest.ts";
import { fetchWords, openWords, type Words } from "../words/word-reads.ts";
import type { IndexCaches } from "./caches.ts";
import { findTarget, type Target } from "../scopes/target.ts";

/** Searches of a scope in one snapshot, by words and by vectors. */
export function searchesOn(
  tx: Transaction,
  caches: IndexCaches,
): Pick<Index, "evidence" | "documentMatches" | "foundChunks" | "sentenceMatches"> {
  return {
    async evidence(query) {
      const target = await findTarget(tx, caches.filters, query.scope);
      return target === undefined ? noEvidence(query) : collect(tx, caches, target, query);
    },
    async documentMatches({ scope, query, refs }) {
      const target = await findTarget(tx, caches.filters, scope);
      if (target === undefined) return [];
      const opened = await openWords(tx, caches.words, target);
      const words = await fetchWords(opened, query);
      return scoreDocuments(opened.snapshot, target, words, await documentsOf(tx, target, refs));
    },
    async foundChunks(scope, refs) {
      const target = await findTarget(tx, caches.filters, scope);
      return target === undefined ? [] : readFound(tx, target, refs);
    },
    async sentenceMatches({ scope, fingerprint, vector, refs }) {
      const target = await findTarget(tx, caches.filters, scope);
      return target === undefined ? [] : sentenceMatches(tx, target, fingerprint, vector, refs);
    },
  };
}

async function collect(
  tx: Transaction,
  caches: IndexCaches,
  target: Target,
  query: EvidenceQuery,
): Promise<Evidence> {
  const nearest = query.nearest && (await findNearest(tx, caches.partitions, target, query.nearest));
  const opened = await openWords(tx, caches.words, target);
  const words = await fetchWords(opened, query.lexical.query);
  const found = searchLexical(opened.snapshot, target, words, query.lexical.limit);
  const near = new Set(nearest?.map(({ ref }) => ref));
  const hits = new Set(found.hits.map(({ ref }) => ref));
  const onlyNear = [...near].filter((ref) => !hits.has(ref));
  return {
    lexical: found,
    scopeChunks: target.chunks,
    nearest,
    others: await othersOf(
      tx,
      target,
      query,
      found.hits.map(({ ref }) => ref),
      near,
    ),
    nearestMatches: matchesOf(opened, target, words, onlyNear),
    chunks: query.withChunks ? await readFound(tx, target, [...hits, ...onlyNear]) : [],
  };
}

/** The cosines of the first hits by words that are not among the nearest. */
async function othersOf(
  tx: Transaction,
  target: Target,
  { nearest, depth }: EvidenceQuery,
  hits: readonly number[],
  near: ReadonlySet<number>,
): Promise<Evidence["others"]> {
  if (nearest === undefined) return [];
  const rows = hits.slice(0, depth).filter((ref) => !near.has(ref));
  return cosinesOf(tx, target, nearest.fingerprint, nearest.vector, rows);
}

function matchesOf(
  { snapshot }: Words,
  target: Target,
  words: QueryWords,
  rows: readonly number[],
): Evidence["nearestMatches"] {
  return matchRows(snapshot, target, words, rows);
}

/** The documents of rows within the range, in the order of the rows. */
async function documentsOf(
  tx: Transaction,
  { accountId, range }: Target,
  rows: readonly number[],
): Promise<ReadonlyMap<number, IndexedDocument>> {
  const wanted = rows.filter((row) => row >= range.first && row <= range.last);
  const found = await tx.all<IndexedDocument & { readonly row: number }>(
    `SELECT row, number, first_row AS "firstRow", chunks
    FROM chunk JOIN resource ON resource.account_id = chunk.account_id AND resource.number = chunk.resource
    WHERE chunk.account_id = @accountId AND row = ANY (@wanted::bigint[])`,
    { accountId, wanted },
  );
  const documentOf = new Map(found.map(({ row, ...document }) => [row, document]));
  return new Map(
    wanted.flatMap((row) => {
      const document = documentOf.get(row);
      return document === undefined ? [] : [[row, document] as const];
    }),
  );
}

/** Chunks of the rows within the range, in the given order. Leaves out missing rows. */
async function readFound(
  tx: Transaction,
  { accountId, range }: Pick<Target, "accountId" | "range">,
  rows: readonly number[],
): Promise<FoundChunk[]> {
  const wanted = rows.filter((row) => row >= range.first && row <= range.last);
  if (wanted.length === 0) return [];
  const chunks = await tx.all<FoundRow>(
    `SELECT row, start, line, headings, text, resource FROM chunk
    WHERE account_id = @accountId AND row = ANY (@wanted::bigint[])`,
    { accountId, wanted },
  );
  const resources = await tx.all<FoundDocumentRow & { readonly number: number }>(
    `SELECT resource.number, id, title, version, first_row, sha256, url, locations, metadata, collection_id, owner_id
    FROM resource JOIN scope ON scope.number = resource.scope
    WHERE account_id = @accountId AND resource.number = ANY (@numbers::bigint[])`,
    { accountId, numbers: [...new Set(chunks.map(({ resource }) => resource))] },
  );
  // Results often share a document, whose locations may take longer to read than the chunk.
  const documents = new Map<number, FoundDocument>(resources.map((row) => [row.number, foundDocument(row)]));
  const chunkOf = new Map(chunks.map((row) => [row.row, row]));
  return wanted.flatMap((row) => {
    const chunk = chunkOf.get(row);
    const document = chunk && documents.get(chunk.resource);
    return chunk === undefined || document === undefined ? [] : foundChunk(chunk, document);
  });
}
