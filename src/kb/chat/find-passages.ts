import { byRank } from "../../lib/by-rank.ts";
import type { KnowledgePart } from "../../wire/agent.ts";
import { QUERY_CHARS_MAX, TOP_K_DEFAULT } from "../../wire/search.ts";
import type { KnowledgeBase } from "../resources/knowledge-base.ts";
import { queryResources } from "../resources/query.ts";
import type { Searched } from "../resources/pending.ts";
import type { Passage } from "./passage.ts";

/** A part of an agent's knowledge, as it is searched. */
export interface SearchedPart extends Searched {
  readonly top_k: number;
  /** There is nothing to find. A search would load the model of the tier for nothing. */
  readonly isEmpty: boolean;
}

/** Finds what an agent's parts of the knowledge base are in an account. */
export async function findParts(
  kb: KnowledgeBase,
  accountId: string,
  parts: readonly KnowledgePart[],
): Promise<readonly SearchedPart[]> {
  if (parts.length === 0) return [];
  const collections = await kb.records.collections(accountId);
  return parts.flatMap(({ tier, owner }) => {
    const collection = collections.find((one) => one.tier === tier);
    if (collection === undefined) return [];
    const scope = { accountId, collectionId: collection.id, ownerId: (owner ?? accountId).toWellFormed() };
    return [{ scope, tier, top_k: TOP_K_DEFAULT, isEmpty: collection.chunks === 0 }];
  });
}

/** Searches parts of the knowledge base for a question. Best passage first, numbered from 1. */
export async function findPassages(
  kb: KnowledgeBase,
  accountId: string,
  parts: readonly SearchedPart[],
  question: string,
): Promise<readonly Passage[]> {
  const query = question.slice(0, QUERY_CHARS_MAX).trim();
  if (query === "") return [];
  const outcomes = await Promise.all(
    parts
      .filter(({ isEmpty }) => !isEmpty)
      .map((part) => queryResources(kb, accountId, part, { ...part, query })),
  );
  const found = outcomes.flatMap(({ results, chunks }): readonly Omit<Passage, "number">[] =>
    chunks.map((chunk, at) => Object.assign(chunk, { score: results[at]?.score ?? 0 })),
  );
  // Parts of an agent's knowledge may overlap.
  const unique = [...new Map(found.map((passage) => [passage.id, passage])).values()].toSorted(byRank);
  return unique.map((passage, at) => Object.assign(passage, { number: at + 1 }));
}
