import { z } from "zod";
import { KbsyncError } from "../lib/failure.ts";
import { TOKENIZER } from "../lib/tokens.ts";
import { ANSWER_TOKENS_MIN, Expand } from "../wire/context.ts";
import { Location, placeWords, rangeWords } from "../wire/location.ts";
import { Count, NumberRange } from "../wire/primitives.ts";
import { FRESH_SECONDS_DEFAULT, FreshnessFields, type Receipt } from "../wire/receipt.ts";
import {
  FALLBACK_TEXT,
  joinFallbacks,
  QUERY_CHARS_MAX,
  SearchFallback,
  TOP_K_DEFAULT,
  TOP_K_MAX,
  type SearchAnswer,
  type SearchResult,
} from "../wire/search.ts";
import { ANSWER_TOKENS, cutText, fitsAlone, fitting } from "./budget.ts";
import type { Reached } from "./caller.ts";
import { type Duplicates, duplicatesAmong, withDuplicates } from "./duplicates.ts";
import type { KnownFiles } from "./known-files.ts";
import { withDocument } from "./named-document.ts";
import {
  answerReceipt,
  AnswerReceipt,
  askWithReceipt,
  type FreshQuestion,
  joinReceipts,
  receiptLine,
} from "./receipt.ts";
import type { SearchRequest } from "./service.ts";
import { findSources, type McpSource } from "./sources.ts";
import type { ToolOutput } from "./tool-result.ts";

/** Longest text of a passage of a service without a budget. */
const PASSAGE_CHARS_MAX = 8000;
/** Fewest and most tokens of an answer: a passage with its place, and what Claude Code takes of a tool. */
const TOKENS_MIN = 1000;
const TOKENS_MAX = 25_000;
/** Part of an answer that is the text of its passages. JSON and the places take the rest. */
const TEXT_SHARE = 0.6;

/** Arguments of the tool `search_passages`. */
export const SearchInput = z.object({
  query: z.string().trim().min(1).max(QUERY_CHARS_MAX).describe("The question, in your own words."),
  top_k: z.int().min(1).max(TOP_K_MAX).default(TOP_K_DEFAULT).describe("Maximum number of passages."),
  offset: z
    .int()
    .min(0)
    .max(TOP_K_MAX - 1)
    .default(0)
    .describe("Passages to skip: next_offset of the previous answer."),
  expand: Expand.optional().describe(
    "More text around each passage: section (up to the next heading; best for questions), neighbours, or a number of chunks on each side. Default: the passage alone.",
  ),
  max_tokens: z
    .int()
    .min(TOKENS_MIN)
    .max(TOKENS_MAX)
    .default(ANSWER_TOKENS)
    .describe(`Maximum number of tokens in the answer, as ${TOKENIZER} counts them.`),
  max_per_document: z
    .int()
    .min(1)
    .max(TOP_K_MAX)
    .optional()
    .describe("Maximum number of passages per document, to see several documents."),
  collapse: z
    .boolean()
    .default(true)
    .describe(
      "Returns only the best of several passages with nearly the same text, with the number of the others.",
    ),
  score: z
    .number()
    .min(0)
    .max(1)
    .optional()
    .describe("Only passages with at least this relevance; 0.5 keeps the highly relevant ones."),
  source: z
    .string()
    .min(1)
    .max(4096)
    .optional()
    .describe("Search only this source: a folder or owner_id from list_sources. Default: all."),
  collection: z
    .string()
    .min(1)
    .max(200)
    .optional()
    .describe("Search only this collection: fastest, moderate, high_accuracy, or its id."),
  document: z
    .string()
    .min(1)
    .max(4096)
    .optional()
    .describe("Search only this document: its document_id or path."),
  filter: z
    .record(z.string(), z.unknown())
    .optional()
    .describe(
      'Conditions on the metadata of documents: {"lang":"en"}, {"year":{"gte":2020}}, {"tags":{"in":["a","b"]}}, and/or/not.',
    ),
  ...FreshnessFields,
});
export type SearchInput = z.infer<typeof SearchInput>;

/** Where a passage stands. Services of other releases leave out some of it. */
const Place = z.object({
  heading_path: z.string().optional().describe("Title and headings above the passage."),
  start: Count.optional().describe("UTF-16 offset in the text that read_document returns."),
  end: Count.optional(),
  lines: NumberRange.optional().describe("Lines of that text."),
  pages: NumberRange.optional(),
  locations: z
    .array(Location)
    .optional()
    .describe("Pages, slides, sheet and rows, or e-mail part of the file."),
  sha256: z.string().optional().describe("Of the document's text in this version."),
  file_url: z.string().optional(),
});

/** Result of the tool `search_passages`. */
export const SearchOutput = z.object({
  results: z.array(
    z.object({
      score: z.number().describe("Relevance in [0, 1]; means the same in every source."),
      document_id: z.string(),
      title: z.string().nullable().describe("Of the document; null if the service does not report it."),
      path: z.string().nullable().describe("File below its folder; null for a document of another origin."),
      folder: z.string().nullable(),
      folder_description: z.string().optional().describe("What the document's folder is about."),
      owner_id: z.string(),
      collection_id: z.string(),
      chunk_id: z.string(),
      version: z.number().describe("Of the document's text; the places below are right for this one."),
      ...Place.shape,
      file_changed: z.boolean().optional().describe("Its file was changed or deleted since."),
      text: z.string(),
      hits: z
        .array(z.object({ chunk_id: z.string(), score: z.number(), start: Count, end: Count }))
        .optional()
        .describe("With expand: the chunks found within the text, best first."),
      duplicates: Count.optional().describe("Further passages with nearly the same text."),
      duplicate_documents: z
        .array(z.object({ document_id: z.string(), title: z.string() }))
        .optional()
        .describe("Other documents that contain them."),
    }),
  ),
  tokenizer: z.string().describe("What counts the tokens for max_tokens, over the results as JSON."),
  fallback: SearchFallback.optional(),
  receipt: AnswerReceipt,
  next_offset: z.number().nullable().describe("Offset of the next passages; null if there are none."),
});
export type SearchOutput = z.infer<typeof SearchOutput>;

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
  const waitSeconds = input.freshness && (input.wait_seconds ?? FRESH_SECONDS_DEFAULT);
  const ask: Ask = (target, more) => reached.service.search({ ...fields, ...target, ...more }, signal);
  const find = (targets: readonly SearchTarget[]): ReturnType<typeof askTargets> =>
    askTargets(reached, targets, { waitSeconds, signal }, async (target, fresh) => ({
      target,
      answer: await ask(target, { top_k, ...fresh }),
    }));
  refuseTwice(input);
  const { answer: searched, receipt } =
    document === undefined
      ? await find((await findSources(reached, files, input, signal)).map(targetOf))
      : await withDocument(reached, files, document, (doc_id) => find([{ doc_id }]));
  const answers = searched.map(({ answer }) => answer);
  const ranked = answers.flatMap((answer) => answer.results).toSorted(byRank);
  const duplicates = duplicatesAmong(collapse ? ranked : []);
  const [earlier, hits] = [ranked.slice(0, offset), ranked.slice(offset, top_k)];
  const shown = await showHits(searched, { earlier, hits, duplicates }, input, files, ask);
  const marked = shown.map((each) =>
    Object.assign(
      withDuplicates(each, duplicates.of(hitIds(each))),
      receipt.changed.includes(each.document_id) && { file_changed: true },
    ),
  );
  const results = pageOf(marked, hits[0], input.max_tokens);
  const covered = new Set(results.flatMap(hitIds));
  const missing = hits.findIndex((hit) => !covered.has(hit.id) && !duplicates.has(hit));
  const next = offset + (missing === -1 ? hits.length : Math.max(1, missing));
  // A full page may be the last one as well; the next one is empty then.
  const isEnd = next >= TOP_K_MAX || (missing === -1 && next < top_k);
  const data = {
    results,
    tokenizer: TOKENIZER,
    receipt: answerReceipt(receipt),
    next_offset: isEnd ? null : next,
  };
  const fallback = joinFallbacks(answers);
  const line = receiptLine(receipt, waitSeconds !== undefined, fallback);
  const remarks = [
    ...(fallback === undefined ? [] : [FALLBACK_TEXT[fallback]]),
    ...(line === undefined ? [] : [line]),
  ];
  const text = [...remarks, resultText(data)].join("\n\n");
  return { data: { ...data, ...(fallback !== undefined && { fallback }) }, text };
}

/** Searches targets, and completes the joined receipt of the answers. */
function askTargets(
  { askLedger }: Reached,
  targets: readonly SearchTarget[],
  fresh: Pick<FreshQuestion, "waitSeconds" | "signal">,
  ask: (target: SearchTarget, fresh: ReturnType<typeof freshnessOf>) => Promise<Searched>,
): Promise<{ readonly answer: readonly Searched[]; readonly receipt: Receipt }> {
  const scopes = targets.map(({ doc_id: documentId, collection_id: collectionId, owner_id: ownerId }) =>
    documentId === undefined ? { collectionId: collectionId ?? "", ownerId: ownerId ?? "" } : { documentId },
  );
  return askWithReceipt(
    askLedger,
    { scopes, ...fresh },
    (seconds) => Promise.all(targets.map((target) => ask(target, freshnessOf(seconds)))),
    (searched) => ({
      receipt: joinReceipts(searched.map(({ answer }) => answer.receipt)),
      cited: searched
        .flatMap(({ answer }) => answer.results)
        .toSorted(byRank)
        .map(({ payload }) => payload.resourceId),
    }),
  );
}

function freshnessOf(seconds: number | undefined): Pick<SearchRequest, "freshness" | "wait_seconds"> {
  return seconds === undefined ? {} : { freshness: "current", wait_seconds: seconds };
}

interface Searched {
  readonly target: SearchTarget;
  /** The hits from the first one on. */
  readonly answer: SearchAnswer;
}

type Ask = (
  target: SearchTarget,
  more: Pick<SearchRequest, "top_k" | "offset" | "expand" | "max_tokens" | "freshness" | "wait_seconds">,
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

/** Returns the ids of the hits of an entry, each once. */
function hitIds({ chunk_id: best, hits = [] }: Found): string[] {
  return [...new Set([best, ...hits.map(({ chunk_id }) => chunk_id)])];
}

/** Orders results of several answers as each of them is ordered. */
export function byRank(a: SearchResult, b: SearchResult): number {
  return b.score - a.score || (a.id < b.id ? -1 : 1);
}

type SearchTarget = Pick<SearchRequest, "doc_id" | "collection_id" | "owner_id">;

function targetOf({ collection_id, owner_id }: McpSource): SearchTarget {
  return { collection_id, owner_id };
}

function refuseTwice({ source, collection, document }: SearchInput): void {
  if (document === undefined || (source === undefined && collection === undefined)) return;
  throw new KbsyncError("a document was named, and a source or collection as well", {
    code: "too_much_named",
    hint: "Name one of them.",
  });
}

type Found = SearchOutput["results"][number];

function foundAt({ id, score, version, payload }: SearchResult, files: KnownFiles): Found {
  const file = files.fileOf(payload.resourceId);
  const { hits, duplicates, duplicateDocuments } = payload;
  return {
    score,
    document_id: payload.resourceId,
    title: payload.title ?? null,
    path: file?.path ?? payload.filePath ?? null,
    folder: file?.folder ?? null,
    ...(payload.folderDescription !== undefined && { folder_description: payload.folderDescription }),
    owner_id: payload.ownerId,
    collection_id: payload.collectionId,
    chunk_id: id,
    version,
    ...placeOf(payload),
    text: hits === undefined ? cutText(payload.content, PASSAGE_CHARS_MAX) : payload.content,
    ...(hits !== undefined && {
      hits: hits.map((hit) => ({ chunk_id: hit.id, score: hit.score, start: hit.start, end: hit.end })),
    }),
    ...(duplicates !== undefined && { duplicates }),
    ...(duplicateDocuments !== undefined && {
      duplicate_documents: duplicateDocuments.map(({ resourceId: document_id, title }) => ({
        document_id,
        title,
      })),
    }),
  };
}

function placeOf(payload: SearchResult["payload"]): z.infer<typeof Place> {
  const { path, start, end, lines, pages, locations, sha256, fileUrl } = payload;
  return { heading_path: path, start, end, lines, pages, locations, sha256, file_url: fileUrl };
}

function resultText({ results, next_offset }: Pick<SearchOutput, "results" | "next_offset">): string {
  if (results.length === 0) return "Nothing was found.";
  const described = new Set<string | undefined>([undefined]);
  const passages = results.map((result) => {
    const { score, path, title, document_id, lines, locations, text, folder_description, duplicates } =
      result;
    const name = path ?? title;
    const where = name === null ? `document ${document_id}` : `${name} (document ${document_id})`;
    const places = locations === undefined ? rangeWords("line", lines) : [placeWords(locations)];
    // Once for all passages of a folder.
    const about = described.has(folder_description) ? "" : `\nFolder: ${folder_description}`;
    described.add(folder_description);
    const others = duplicates === undefined ? [] : [`${duplicates} more with nearly this text`];
    return `[${score.toFixed(2)}] ${[where, ...places, ...others].join(", ")}${about}\n${text}`;
  });
  if (next_offset !== null) passages.push(`[More passages: offset ${next_offset}.]`);
  return passages.join("\n\n");
}
