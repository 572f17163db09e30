import type { KnowledgePart } from "../../wire/agent.ts";
import { QUERY_CHARS_MAX } from "../../wire/search.ts";
import type { KnowledgeBase } from "../resources/knowledge-base.ts";
import { queryResources } from "../resources/query.ts";
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
  const collections = await kb.records.collections(accountId);
  const found = await Promise.all(
    parts.map(async ({ tier, owner, top_k, score }): Promise<readonly Omit<Passage, "number">[]> => {
      const collection = collections.find((one) => one.tier === tier);
      // An empty collection is not searched, which would load the model of its tier for nothing.
      if (collection === undefined || collection.chunks === 0) return [];
      const body = { query, collection_id: collection.id, owner_id: owner ?? accountId, top_k };
      const search = score === undefined ? body : { ...body, score };
      const { results, chunks } = await queryResources(kb, accountId, search);
      return chunks.map((chunk, at) => Object.assign(chunk, { score: results[at]?.score ?? 0 }));
    }),
  );
  // Parts of an agent's knowledge may overlap.
  return [...new Map(found.flat().map((passage) => [passage.id, passage])).values()]
    .toSorted((a, b) => b.score - a.score || (a.id < b.id ? -1 : 1))
    .map((passage, at) => Object.assign(passage, { number: at + 1 }));
}
