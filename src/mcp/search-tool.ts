import { byRank } from "../lib/by-rank.ts";
import { KbsyncError } from "../lib/failure.ts";
import { TOKENIZER } from "../lib/tokens.ts";
import { FALLBACK_TEXT, joinFallbacks, joinPending, pendingText, type SearchAnswer } from "../wire/search.ts";
import { fitting } from "./budget.ts";
import type { Reached } from "./caller.ts";
import type { KnownFiles } from "./known-files.ts";
import { withDocument } from "./named-document.ts";
import type { SearchRequest } from "./service.ts";
import { findSources, type McpSource } from "./sources.ts";
import type { ToolOutput } from "./tool-result.ts";
import { SearchInput, SearchOutput } from "./search-schema.ts";
import { foundAt, resultText } from "./found-passages.ts";

/** Part of an answer that is the text of its passages. JSON and the locations take the rest. */
const TEXT_SHARE = 0.6;

/** Searches the selected sources concurrently and returns the best results of all, as many as fit into an answer. */
export async function searchPassages(
  reached: Reached,
  files: KnownFiles,
  input: SearchInput,
  signal: AbortSignal,
): Promise<ToolOutput<SearchOutput>> {
  const { query, top_k, score, filter, document, expand, max_tokens: tokensMax } = input;
  const fields = { query, top_k, score, filter, expand, max_tokens: Math.floor(tokensMax * TEXT_SHARE) };
  const find = (targets: readonly SearchTarget[]): Promise<SearchAnswer[]> =>
    Promise.all(targets.map(async (target) => reached.service.search({ ...fields, ...target }, signal)));
  refuseTwice(input);
  const answers =
    document === undefined
      ? await find((await findSources(reached, files, input, signal)).map(targetOf))
      : await withDocument(reached, files, document, (doc_id) => find([{ doc_id }]));
  const ranked = answers.flatMap(({ results }) => results).toSorted(byRank);
  const found = ranked.slice(0, top_k).map((hit) => foundAt(hit, files));
  const data = {
    results: [...fitting(found, tokensMax)],
    tokenizer: TOKENIZER,
    pending: joinPending(answers),
  };
  const fallback = joinFallbacks(answers);
  const line = pendingText(data.pending);
  const remarks = [
    ...(fallback === undefined ? [] : [FALLBACK_TEXT[fallback]]),
    ...(line === undefined ? [] : [line]),
  ];
  const text = [...remarks, resultText(data)].join("\n\n");
  return { data: { ...data, ...(fallback !== undefined && { fallback }) }, text };
}

/** The range of one search. */
export type SearchTarget = Pick<SearchRequest, "doc_id" | "collection_id" | "owner_id">;

/** Returns the target that is all of a source. */
export function targetOf({ collection_id, owner_id }: McpSource): SearchTarget {
  return { collection_id, owner_id };
}

function refuseTwice({ source, collection, document }: SearchInput): void {
  if (document === undefined || (source === undefined && collection === undefined)) return;
  throw new KbsyncError("a document was named, and a source or collection as well", {
    code: "too_much_named",
    hint: "Name one of them.",
  });
}
