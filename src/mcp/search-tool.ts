import { z } from "zod";
import { KbsyncError } from "../lib/failure.ts";
import { Location, placeWords, rangeWords } from "../wire/location.ts";
import { Count, NumberRange } from "../wire/primitives.ts";
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
import { cutText, fitting } from "./budget.ts";
import type { Reached } from "./caller.ts";
import type { KnownFiles } from "./known-files.ts";
import { withDocument } from "./named-document.ts";
import type { SearchRequest } from "./service.ts";
import { findSources, type McpSource } from "./sources.ts";
import type { ToolOutput } from "./tool-result.ts";

/** Longest text of a passage. Those of a kbsync are shorter. */
const PASSAGE_CHARS_MAX = 8000;

/** Arguments of the tool `search_passages`. */
export const SearchInput = z.object({
  query: z.string().trim().min(1).max(QUERY_CHARS_MAX).describe("The question, in your own words."),
  top_k: z.int().min(1).max(TOP_K_MAX).default(TOP_K_DEFAULT).describe("Most passages to return."),
  offset: z
    .int()
    .min(0)
    .max(TOP_K_MAX - 1)
    .default(0)
    .describe("Passages to skip: next_offset of the previous answer."),
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
      text: z.string(),
    }),
  ),
  fallback: SearchFallback.optional(),
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
  const { query, offset, score, filter, document } = input;
  const top_k = Math.min(offset + input.top_k, TOP_K_MAX);
  const ask = (target: SearchTarget): Promise<SearchAnswer> =>
    reached.service.search({ query, top_k, score, filter, ...target }, signal);
  refuseTwice(input);
  const answers =
    document === undefined
      ? await Promise.all((await findSources(reached, files, input, signal)).map(targetOf).map(ask))
      : [await withDocument(reached, files, document, (doc_id) => ask({ doc_id }))];
  const best = answers.flatMap((answer) => answer.results).toSorted(byRank);
  const page = best.slice(offset, top_k).map((result) => foundAt(result, files));
  const results = [...fitting(page)];
  const next = offset + results.length;
  // A full page may be the last one as well; the next one is empty then.
  const isEnd = next >= TOP_K_MAX || (results.length === page.length && next < top_k);
  const data = { results, next_offset: isEnd ? null : next };
  const fallback = joinFallbacks(answers);
  const text = resultText(data);
  return fallback === undefined
    ? { data, text }
    : { data: { ...data, fallback }, text: `${FALLBACK_TEXT[fallback]}\n\n${text}` };
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

function foundAt({ id, score, version, payload }: SearchResult, files: KnownFiles) {
  const file = files.fileOf(payload.resourceId);
  return {
    score,
    document_id: payload.resourceId,
    title: payload.title ?? null,
    path: file?.path ?? null,
    folder: file?.folder ?? null,
    ...(payload.folderDescription !== undefined && { folder_description: payload.folderDescription }),
    owner_id: payload.ownerId,
    collection_id: payload.collectionId,
    chunk_id: id,
    version,
    ...placeOf(payload),
    text: cutText(payload.content, PASSAGE_CHARS_MAX),
  };
}

function placeOf(payload: SearchResult["payload"]): z.infer<typeof Place> {
  const { path, start, end, lines, pages, locations, sha256, fileUrl } = payload;
  return { heading_path: path, start, end, lines, pages, locations, sha256, file_url: fileUrl };
}

function resultText({ results, next_offset }: SearchOutput): string {
  if (results.length === 0) return "Nothing was found.";
  const described = new Set<string | undefined>([undefined]);
  const passages = results.map((result) => {
    const { score, path, title, document_id, lines, locations, text, folder_description } = result;
    const name = path ?? title;
    const where = name === null ? `document ${document_id}` : `${name} (document ${document_id})`;
    const places = locations === undefined ? rangeWords("line", lines) : [placeWords(locations)];
    // Once for all passages of a folder.
    const about = described.has(folder_description) ? "" : `\nFolder: ${folder_description}`;
    described.add(folder_description);
    return `[${score.toFixed(2)}] ${[where, ...places].join(", ")}${about}\n${text}`;
  });
  if (next_offset !== null) passages.push(`[More passages: offset ${next_offset}.]`);
  return passages.join("\n\n");
}
