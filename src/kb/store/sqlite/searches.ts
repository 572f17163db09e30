import assert from "node:assert/strict";
import { setImmediate } from "node:timers/promises";
import type { WordSnapshot } from "../../index/words/query-terms.ts";
import { queryWords, type QueryWords } from "../../lexical/word-match.ts";
import type { DocumentQuery, Evidence, EvidenceQuery, Index, Scope, DocumentMatch } from "../search-index.ts";
import { matchRows, searchLexical } from "../search/lexical.ts";
import { inLanguagesOf, replaceUnknown, withCompounds, type NearFound } from "../search/near-words.ts";
import { noEvidence, type SearchTarget } from "../search/search-target.ts";
import type { Connection } from "./database/connection.ts";
import type { Lookups } from "./resources/lookups.ts";
import type { prepareScopes } from "./scopes/scopes.ts";
import type { SentenceReads } from "./vectors/sentence-reads.ts";
import { prepareVectors } from "./vectors/vectors.ts";
import { prepareWordReads } from "./words/word-reads.ts";
import { scoreDocuments, type IndexedDocument } from "../search/document-words.ts";

/**
 * Slices that a search may read before it reads the rest in one go: far more than a million chunks need. Without the bound,
 * searches that together need more memory than the lists may have would evict each other's lists for ever.
 */
const SLICES_MAX = 2000;

/** Wraps a read so that its statements all see one snapshot. */
type Snapshot = <A extends readonly unknown[], T>(run: (...given: A) => T) => (...given: A) => T;

/** Prepares the searches of a scope, by words and by vectors. They run in slices, and other reads run in between. */
export function prepareSearches(
  db: Connection,
  read: Snapshot,
  scopes: ReturnType<typeof prepareScopes>,
  lookups: Pick<Lookups, "foundChunks">,
  sentences: Pick<SentenceReads, "cosines">,
): Pick<Index, "evidence" | "documentMatches"> {
  const snapshotOf = prepareWordReads(db);
  const documentWords = prepareDocumentWords(db);
  const vectors = prepareVectors(db);

  /**
   * Repeats a search, each time on one snapshot, until all that it needs is in memory. Other reads run between the attempts.
   */
  const inSlices = <Q extends { readonly scope: Scope }, T>(
    nothing: (query: Q) => T,
    search: (target: SearchTarget, query: Q, isLast: boolean, near: NearFound) => T | undefined,
  ) => {
    const attempt = read((query: Q, isLast: boolean, near: NearFound) => {
      const target = scopes.find(query.scope);
      return target === undefined ? nothing(query) : search(target, query, isLast, near);
    });
    return async (query: Q): Promise<T> => {
      const near: NearFound = { near: new Map() };
      for (let slice = 1; slice < SLICES_MAX; slice++) {
        const found = attempt(query, false, near);
        if (found !== undefined) return found;
        await setImmediate();
      }
      const found = attempt(query, true, near);
      assert(found !== undefined, "a search without a bound did not finish");
      return found;
    };
  };

  const evidence = (
    target: SearchTarget,
    query: EvidenceQuery,
    isLast: boolean,
    nearFound: NearFound,
  ): Evidence | undefined => {
    const { range, chunks: scopeChunks } = target;
    const { fingerprint = "", vector = new Float32Array(), limit = 0 } = query.nearest ?? {};
    const nearest = query.nearest && vectors.nearest(target, fingerprint, vector, limit, isLast);
    if (query.nearest !== undefined && nearest === undefined) return undefined;
    const snapshot = snapshotOf(target);
    const words = wordsOf(snapshot, query.lexical.query, isLast, nearFound);
    if (words === undefined) return undefined;
    const found = searchLexical(snapshot, target, words, query.lexical.limit);
    const near = new Set(nearest?.map(({ ref }) => ref));
    const hits = new Set(found.hits.map(({ ref }) => ref));
    const first = found.hits.slice(0, query.depth).map(({ ref }) => ref);
    const notNear = first.filter((ref) => !near.has(ref));
    const onlyNear = [...near].filter((ref) => !hits.has(ref));
    return {
      lexical: found,
      scopeChunks,
      nearest,
      others: query.nearest ? sentences.cosines(range, fingerprint, vector, notNear) : [],
      nearestMatches: matchRows(snapshot, target, words, onlyNear),
      chunks: lookups.foundChunks(range, query.withChunks ? [...hits, ...onlyNear] : []),
    };
  };

  return {
    evidence: inSlices(noEvidence, evidence),
    documentMatches: inSlices(
      (_query: DocumentQuery) => [],
      (target, { query, refs }, isLast, near) => {
        const snapshot = snapshotOf(target);
        const words = wordsOf(snapshot, query, isLast, near);
        return words && documentWords(snapshot, target, words, refs);
      },
    ),
  };
}

/** Reads a query, with its typing errors replaced; undefined: call again with the same `near`. */
function wordsOf(
  snapshot: WordSnapshot,
  query: string,
  isLast: boolean,
  near: NearFound,
): QueryWords | undefined {
  near.withParts ??= withCompounds(snapshot, inLanguagesOf(snapshot, queryWords(query), query), query);
  const words = near.withParts;
  const known = replaceUnknown(snapshot, words, near);
  return isLast ? (known ?? words) : known;
}

/** Scores the documents of rows by the words of a query. */
type DocumentWords = (
  snapshot: WordSnapshot,
  target: SearchTarget,
  words: QueryWords,
  rows: readonly number[],
) => DocumentMatch[];

/** Prepares the scoring of whole documents. */
function prepareDocumentWords(db: Connection): DocumentWords {
  const selectDocument = db.prepare<[number], IndexedDocument>(`
    SELECT number, first_row AS firstRow, chunks FROM resource
    WHERE number = (SELECT resource FROM chunk WHERE row = ?)`);

  return (snapshot, target, words, rows) => {
    const documents = new Map<number, IndexedDocument>();
    for (const row of rows) {
      const found = row < target.range.first || row > target.range.last ? undefined : selectDocument.get(row);
      if (found !== undefined) documents.set(row, found);
    }
    return scoreDocuments(snapshot, target, words, documents);
  };
}
