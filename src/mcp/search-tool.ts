import { byRank } from "../lib/by-rank.ts";
import { KbsyncError } from "../lib/failure.ts";
import { TOKENIZER } from "../lib/tokens.ts";
import { ANSWER_TOKENS_MIN } from "../wire/context.ts";
import {
  FALLBACK_TEXT,
  joinFallbacks,
  joinPending,
  pendingText,
  TOP_K_MAX,
  type SearchAnswer,
  type SearchResult,
} from "../wire/search.ts";
import { fitsAlone, fitting } from "./budget.ts";
import type { Reached } from "./caller.ts";
import { type Duplicates, duplicatesAmong, withDuplicates } from "./duplicates.ts";
import type { KnownFiles } from "./known-files.ts";
import { withDocument } from "./named-document.ts";
import type { SearchRequest } from "./service.ts";
import { findSources, type McpSource } from "./sources.ts";
import type { ToolOutput } from "./tool-result.ts";
import { SearchInput, SearchOutput } from "./search-schema.ts";
import { hitIds, resultText, type Found, foundAt } from "./found-passages.ts";

/** Part of an answer that is the text of its passages. JSON and the locations take the rest. */
const TEXT_SHARE = 0.6;

/** Searches the selected sources concurrently and returns the best results of all, as many as fit into an answer. */
export async function searchPassages(
  reached: Reached,
  files: KnownFiles,
  input: SearchInput,
  signal: AbortSignal,
): Promise<ToolOutput<SearchOutput>> {
  const { query, offset, score, filter, document, max_per_document, collapse } = input;
  const top_k = Math.min(offset + input.top_k, TOP_K_MAX);
  const fields = { query, score, filter, max_per_document, collapse };
  const ask: Ask = (target, more) => reached.service.search({ ...fields, ...target, ...more }, signal);
  const find = (targets: readonly SearchTarget[]): Promise<Searched[]> =>
    Promise.all(targets.map(async (target) => ({ target, answer: await ask(target, { top_k }) })));
  refuseTwice(input);
  const searched =
    document === undefined
      ? await find((await findSources(reached, files, input, signal)).map(targetOf))
      : await withDocument(reached, files, document, (doc_id) => find([{ doc_id }]));
  const answers = searched.map(({ answer }) => answer);
  const ranked = answers.flatMap((answer) => answer.results).toSorted(byRank);
  const duplicates = duplicatesAmong(collapse ? ranked : []);
  const [earlier, hits] = [ranked.slice(0, offset), ranked.slice(offset, top_k)];
  const shown = await showHits(searched, { earlier, hits, duplicates }, input, files, ask);
  const marked = shown.map((each) => withDuplicates(each, duplicates.of(hitIds(each))));
  const results = pageOf(marked, hits[0], input.max_tokens);
  const covered = new Set(results.flatMap(hitIds));
  const missing = hits.findIndex((hit) => !covered.has(hit.id) && !duplicates.has(hit));
  const next = offset + (missing === -1 ? hits.length : Math.max(1, missing));
  // A full page may be the last one as well; the next one is empty then.
  const isEnd = next >= TOP_K_MAX || (missing === -1 && next < top_k);
  const data = {
    results,
    tokenizer: TOKENIZER,
    pending: joinPending(answers),
    next_offset: isEnd ? null : next,
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

interface Searched {
  readonly target: SearchTarget;
  /** The hits from the first one on. */
  readonly answer: SearchAnswer;
}

type Ask = (
  target: SearchTarget,
  more: Pick<SearchRequest, "top_k" | "offset" | "expand" | "max_tokens">,
) => Promise<SearchAnswer>;

/** The hits of a page, and those of the pages before it, of all sources. */
interface Page {
  readonly earlier: readonly SearchResult[];
  readonly hits: readonly SearchResult[];
  readonly duplicates: Duplicates;
}

/**
 * Returns the hits as entries of the answer, with the text around them if the input asks for it. Each service is asked again
 * for its own hits, behind those of earlier pages. If the first entry alone is too long, asks for less text.
 */
async function showHits(
  searched: readonly Searched[],
  { earlier, hits, duplicates }: Page,
  { expand, max_tokens: tokensMax }: SearchInput,
  files: KnownFiles,
  ask: Ask,
): Promise<Found[]> {
  const isNew = (hit: Pick<SearchResult, "id">): boolean => !duplicates.has(hit);
  const within = async ({ target, answer }: Searched, max_tokens: number): Promise<SearchResult[]> => {
    const own = hits.filter((hit) => answer.results.includes(hit));
    if (own.length === 0) return own;
    const offset = earlier.filter((hit) => answer.results.includes(hit)).length;
    const { results, budget } = await ask(target, { top_k: own.length, offset, expand, max_tokens });
    // A service without these additions answers from its first hit on.
    return budget === undefined ? own : results;
  };
  let shown = expand === undefined ? hits.filter(isNew).map((hit) => foundAt(hit, files)) : undefined;
  for (let tokens = Math.floor(tokensMax * TEXT_SHARE); tokens >= ANSWER_TOKENS_MIN; tokens >>= 1) {
    if (shown !== undefined && (shown[0] === undefined || fitsAlone(shown[0], tokensMax))) return shown;
    const results = await Promise.all(searched.map((each) => within(each, tokens)));
    shown = results
      .flat()
      .filter((result) => (result.payload.hits ?? [result]).some(isNew))
      .toSorted(byRank)
      .map((hit) => foundAt(hit, files));
  }
  return shown ?? [];
}

/** Returns the entries that fit. That of the best hit is one of them, because the next page begins behind that. */
function pageOf<F extends Found>(
  found: readonly F[],
  best: Pick<SearchResult, "id"> | undefined,
  tokensMax: number,
): F[] {
  const results = [...fitting(found, tokensMax)];
  const own = best && found.find((each) => hitIds(each).includes(best.id));
  if (own === undefined || results.includes(own)) return results;
  return [...fitting([own, ...found.filter((each) => each !== own)], tokensMax)];
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
