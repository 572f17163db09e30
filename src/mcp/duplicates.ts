import { byRank } from "../lib/by-rank.ts";
import { firstOfEach } from "../lib/near-duplicates.ts";
import { DUPLICATE_DOCUMENTS_MAX } from "../wire/context.ts";
import type { SearchAnswer, SearchResult } from "../wire/search.ts";

/** Hits of several sources with nearly the same text as a better one. Each service collapses its own hits alone. */
export interface Duplicates {
  /** Whether nearly its text has been seen in a better hit. */
  has(hit: Pick<SearchResult, "id">): boolean;
  /** Returns the later hits with nearly the text of these, given by their ids. */
  of(ids: readonly string[]): readonly SearchResult[];
}

/** Finds the near-duplicates among hits, best first. What counts for a hit depends on those before it alone. */
export function duplicatesAmong(ranked: readonly SearchResult[]): Duplicates {
  const byFirst = new Map<string, SearchResult[]>();
  const later = new Set<string>();
  for (const [at, first] of firstOfEach(ranked.map(({ payload }) => payload.content)).entries()) {
    const [hit, better] = [ranked[at], ranked[first]];
    if (hit === undefined || better === undefined || first === at) continue;
    later.add(hit.id);
    byFirst.set(better.id, [...(byFirst.get(better.id) ?? []), hit]);
  }
  return { has: ({ id }) => later.has(id), of: (ids) => ids.flatMap((id) => byFirst.get(id) ?? []) };
}

/** The note of a result about passages with nearly the same text. */
interface Counted {
  readonly document_id: string;
  readonly duplicates?: number | undefined;
  readonly duplicate_documents?: { document_id: string; title: string }[] | undefined;
}

/** Adds duplicates to those that the service has counted. */
export function withDuplicates<T extends Counted>(result: T, found: readonly SearchResult[]): T {
  if (found.length === 0) return result;
  const known = (result.duplicate_documents ?? []).map(({ document_id: resourceId, title }) => ({
    resourceId,
    title,
  }));
  return {
    ...result,
    duplicates: (result.duplicates ?? 0) + countOf(found),
    duplicate_documents: documentsOf(known, found, result.document_id).map(
      ({ resourceId: document_id, title }) => ({ document_id, title }),
    ),
  };
}

/**
 * Collapses the near-duplicates among the results of several answers: the best of a group stays in its answer and counts the others.
 * Expects each answer's results best first.
 */
export function collapseAnswers(answers: readonly SearchAnswer[]): SearchAnswer[] {
  const ranked = answers.flatMap(({ results }) => results).toSorted(byRank);
  const duplicates = duplicatesAmong(ranked);
  return answers.map((answer) => ({
    ...answer,
    results: answer.results
      .filter((result) => !duplicates.has(result))
      .map((result) => withCount(result, duplicates.of([result.id]))),
  }));
}

function withCount(result: SearchResult, found: readonly SearchResult[]): SearchResult {
  if (found.length === 0) return result;
  const { payload } = result;
  const duplicates = (payload.duplicates ?? 0) + countOf(found);
  const duplicateDocuments = documentsOf(payload.duplicateDocuments ?? [], found, payload.resourceId);
  const named = duplicateDocuments.length > 0 && { duplicateDocuments };
  return { ...result, payload: { ...payload, duplicates, ...named } };
}

function countOf(found: readonly SearchResult[]): number {
  return found.reduce((sum, { payload }) => sum + 1 + (payload.duplicates ?? 0), 0);
}

interface NamedDocument {
  readonly resourceId: string;
  readonly title: string;
}

/** Returns the documents of duplicates, except the result's own. */
function documentsOf(
  known: readonly NamedDocument[],
  found: readonly SearchResult[],
  own: string,
): NamedDocument[] {
  const titles = new Map(known.map(({ resourceId, title }) => [resourceId, title]));
  for (const { payload } of found) {
    titles.set(payload.resourceId, payload.title ?? "");
    for (const { resourceId, title } of payload.duplicateDocuments ?? []) titles.set(resourceId, title);
  }
  titles.delete(own);
  return [...titles].slice(0, DUPLICATE_DOCUMENTS_MAX).map(([resourceId, title]) => ({ resourceId, title }));
}
