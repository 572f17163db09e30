import type { KnowledgePart } from "../../wire/agent.ts";
import { QUERY_CHARS_MAX } from "../../wire/search.ts";
import type { SearchResult } from "../../wire/search.ts";
import type { KnowledgeBase } from "../resources/knowledge-base.ts";
import { queryResources } from "../resources/query.ts";
import type { Store } from "../store/store.ts";
import type { FoundChunk } from "../store/records.ts";
import type { Passage } from "./passage.ts";

/** Searches an agent's part of the knowledge base for a question. Best passage first, numbered from 1. */
export async function findPassages(
  kb: KnowledgeBase,
  accountId: string,
  parts: readonly KnowledgePart[],
  question: string,
): Promise<readonly Passage[]> {
  const query = question.slice(0, QUERY_CHARS_MAX).trim();
  if (query === "" || parts.length === 0) return [];
  const collections = await kb.store.collections(accountId);
  const rows = new Map<string, number>();
  const store = recordingRows(kb.store, rows);
  const found = await Promise.all(
    parts.map(async ({ tier, owner, top_k, score }): Promise<readonly SearchResult[]> => {
      const collection = collections.find((one) => one.tier === tier);
      // An empty collection is not searched, which would load the model of its tier for nothing.
      if (collection === undefined || collection.chunks === 0) return [];
      const body = { query, collection_id: collection.id, owner_id: owner ?? accountId, top_k };
      const search = score === undefined ? body : { ...body, score };
      return (await queryResources(kb, accountId, search, store)).results;
    }),
  );
  // Parts of an agent's knowledge may overlap.
  const best = [...new Map(found.flat().map((result) => [result.id, result])).values()].toSorted(
    (a, b) => b.score - a.score || (a.id < b.id ? -1 : 1),
  );
  const located = await Promise.all(
    best.map(async ({ id, score, payload }) => {
      const { resourceId, content: text, before, after } = payload;
      const row = rows.get(id);
      const passage =
        row === undefined ? undefined : await kb.store.passage({ accountId, resourceId, chunkId: id, row });
      return passage === undefined
        ? []
        : [{ resourceId, chunkId: id, score, text, before, after, ...passage }];
    }),
  );
  return located.flat().map((passage, at) => Object.assign(passage, { number: at + 1 }));
}

/** Wraps the store to record the row of each chunk that a search reads, by id: results of searches do not contain rows. */
function recordingRows(store: Store, rows: Map<string, number>): Store {
  const record = (chunks: readonly FoundChunk[]): void => {
    for (const { id, row } of chunks) rows.set(id, row);
  };
  return {
    ...store,
    evidence: async (query) => {
      const evidence = await store.evidence(query);
      record(evidence.chunks);
      return evidence;
    },
    chunksByRow: async (scope, wanted) => {
      const chunks = await store.chunksByRow(scope, wanted);
      record(chunks);
      return chunks;
    },
  };
}
