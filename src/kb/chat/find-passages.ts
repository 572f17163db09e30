import type { KnowledgePlace } from "../../wire/agent.ts";
import { QUERY_CHARS_MAX } from "../../wire/search.ts";
import type { SearchResult } from "../../wire/search.ts";
import type { KnowledgeBase } from "../resources/knowledge-base.ts";
import { queryResources } from "../resources/query.ts";
import type { Passage } from "./passage.ts";

/** What an agent's part of the knowledge base says to a question, best first, numbered from 1. */
export async function findPassages(
  kb: KnowledgeBase,
  accountId: string,
  places: readonly KnowledgePlace[],
  question: string,
): Promise<readonly Passage[]> {
  const query = question.slice(0, QUERY_CHARS_MAX).trim();
  if (query === "" || places.length === 0) return [];
  const collections = await kb.store.collections(accountId);
  const found = await Promise.all(
    places.map(async ({ tier, owner, top_k, score }): Promise<readonly SearchResult[]> => {
      const collection = collections.find((one) => one.tier === tier);
      // An empty one is not asked: that would load the model of its tier for nothing.
      if (collection === undefined || collection.chunks === 0) return [];
      const { results } = await queryResources(kb, accountId, {
        query,
        collection_id: collection.id,
        owner_id: owner ?? accountId,
        top_k,
        ...(score === undefined ? {} : { score }),
      });
      return results;
    }),
  );
  // Two places of an agent may overlap.
  const best = [...new Map(found.flat().map((result) => [result.id, result])).values()].toSorted(
    (a, b) => b.score - a.score || (a.id < b.id ? -1 : 1),
  );
  const located = await Promise.all(
    best.map(async ({ id, score, payload }) => {
      const { resourceId, content: text } = payload;
      const place = await kb.store.passage({ accountId, resourceId, chunkId: id });
      return place === undefined ? [] : [{ resourceId, chunkId: id, score, text, ...place }];
    }),
  );
  return located.flat().map((passage, at) => Object.assign(passage, { number: at + 1 }));
}
