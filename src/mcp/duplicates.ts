import { firstOfEach } from "../lib/near-duplicates.ts";
import { DUPLICATE_DOCUMENTS_MAX } from "../wire/context.ts";
import type { SearchResult } from "../wire/search.ts";

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

/** What a result says about passages with nearly the same text. */
interface Counted {
  readonly document_id: string;
  readonly duplicates?: number | undefined;
  readonly duplicate_documents?: { document_id: string; title: string }[] | undefined;
}

/** Adds duplicates to those that the service has counted. */
export function withDuplicates<T extends Counted>(result: T, found: readonly SearchResult[]): T {
  if (found.length === 0) return result;
  const count = found.reduce((sum, { payload }) => sum + 1 + (payload.duplicates ?? 0), 0);
  const documents = new Map(
    (result.duplicate_documents ?? []).map(({ document_id, title }) => [document_id, title]),
  );
  for (const { payload } of found) {
    documents.set(payload.resourceId, payload.title ?? "");
    for (const { resourceId, title } of payload.duplicateDocuments ?? []) documents.set(resourceId, title);
  }
  documents.delete(result.document_id);
  return {
    ...result,
    duplicates: (result.duplicates ?? 0) + count,
    duplicate_documents: [...documents]
      .slice(0, DUPLICATE_DOCUMENTS_MAX)
      .map(([document_id, title]) => ({ document_id, title })),
  };
}
