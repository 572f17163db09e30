import type { KnowledgePart } from "../../wire/agent.ts";
import { QUERY_CHARS_MAX } from "../../wire/search.ts";
import type { SearchResult } from "../../wire/search.ts";
import type { KnowledgeBase } from "../resources/knowledge-base.ts";
import { queryResources } from "../resources/query.ts";
import type { Store } from "../store/store.ts";
import type { FoundChunk } from "../store/records.ts";
import type { Passage } from "./passage.ts";

/** What an agent's part of the knowledge base says to a question, best first, numbered from 1. */
export async function findPassages(
  kb: KnowledgeBase,
  accountId: string,
  places: readonly KnowledgePart[],
  question: string,
): Promise<readonly Passage[]> {
  const query = question.slice(0, QUERY_CHARS_MAX).trim();
  if (query === "" || places.length === 0) return [];
  const collections = await kb.store.collections(accountId);
  const rows = new Map<string, number>();
  const store = notingRows(kb.store, rows);
  const found = await Promise.all(
    places.map(async ({ tier, owner, top_k, score }): Promise<readonly SearchResult[]> => {
      const collection = collections.find((one) => one.tier === tier);
      // An empty one is not asked: that would load the model of its tier for nothing.
      if (collection === undefined || collection.chunks === 0) return [];
      const body = { query, collection_id: collection.id, owner_id: owner ?? accountId, top_k };
      const asked = score === undefined ? body : { ...body, score };
      return (await queryResources(kb, accountId, asked, store)).results;
    }),
  );
  // Two places of an agent may overlap.
  const best = [...new Map(found.flat().map((result) => [result.id, result])).values()].toSorted(
    (a, b) => b.score - a.score || (a.id < b.id ? -1 : 1),
  );
  const located = await Promise.all(
    best.map(async ({ id, score, payload }) => {
      const { resourceId, content: text, before, after } = payload;
      const row = rows.get(id);
      const place =
        row === undefined ? undefined : await kb.store.passage({ accountId, resourceId, chunkId: id, row });
      return place === undefined ? [] : [{ resourceId, chunkId: id, score, text, before, after, ...place }];
    }),
  );
  return located.flat().map((passage, at) => Object.assign(passage, { number: at + 1 }));
}

/** The store, which notes by its id where each chunk lies that it gives a search: answers of searches do not tell. */
function notingRows(store: Store, rows: Map<string, number>): Store {
  const note = (chunks: readonly FoundChunk[]): void => {
    for (const { id, row } of chunks) rows.set(id, row);
  };
  return {
    ...store,
    evidence: async (query) => {
      const evidence = await store.evidence(query);
      note(evidence.chunks);
      return evidence;
    },
    chunksByRow: async (scope, wanted) => {
      const chunks = await store.chunksByRow(scope, wanted);
      note(chunks);
      return chunks;
    },
  };
}
