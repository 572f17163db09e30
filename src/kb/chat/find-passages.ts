import { byRank } from "../../lib/by-rank.ts";
import { countTokens } from "../../lib/tokens.ts";
import type { KnowledgePart } from "../../wire/agent.ts";
import { ANSWER_TOKENS_DEFAULT, type SearchContext } from "../../wire/context.ts";
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

/** A question, and how much to read for it. */
export interface PassagesRequest extends Pick<SearchContext, "expand" | "max_tokens"> {
  readonly question: string;
}

/**
 * Searches parts of the knowledge base for a question. Best passage first, numbered from 1. With `expand`, each is the
 * text around its hits. All have `max_tokens` together.
 */
export async function findPassages(
  kb: KnowledgeBase,
  accountId: string,
  parts: readonly SearchedPart[],
  { question, expand, max_tokens: tokensMax }: PassagesRequest,
): Promise<readonly Passage[]> {
  const query = question.slice(0, QUERY_CHARS_MAX).trim();
  if (query === "") return [];
  const around = {
    expand,
    max_tokens: tokensMax ?? (expand === undefined ? undefined : ANSWER_TOKENS_DEFAULT),
  };
  const outcomes = await Promise.all(
    parts
      .filter(({ isEmpty }) => !isEmpty)
      .map((part) => queryResources(kb, accountId, part, { ...part, query, ...around })),
  );
  const found = outcomes.flatMap(
    ({ results, chunks, passages = chunks }): readonly Omit<Passage, "number">[] =>
      passages.map((chunk, at) => Object.assign(chunk, { score: results[at]?.score ?? 0 })),
  );
  // Parts of an agent's knowledge may overlap.
  const unique = [...new Map(found.map((passage) => [passage.id, passage])).values()].toSorted(byRank);
  return withinTokens(unique, around.max_tokens ?? Infinity).map((passage, at) =>
    Object.assign(passage, { number: at + 1 }),
  );
}

/** Returns the passages that fit, best first. The searches of several parts have the whole number of tokens each. */
function withinTokens<P extends Pick<Passage, "text">>(
  passages: readonly P[],
  tokensMax: number,
): readonly P[] {
  if (tokensMax === Infinity) return passages;
  let tokens = 0;
  const over = passages.findIndex(({ text }) => (tokens += countTokens(text)) > tokensMax);
  return over === -1 ? passages : passages.slice(0, over);
}
