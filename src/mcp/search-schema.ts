import { z } from "zod";
import { TOKENIZER } from "../lib/tokens.ts";
import { Expand } from "../wire/context.ts";
import { Location } from "../wire/location.ts";
import { Count, NumberRange } from "../wire/primitives.ts";
import { Pending, QUERY_CHARS_MAX, SearchFallback, TOP_K_DEFAULT, TOP_K_MAX } from "../wire/search.ts";
import { ANSWER_TOKENS } from "./budget.ts";

/** Fewest and most tokens of an answer: a passage with its location, and what Claude Code takes of a tool. */
const TOKENS_MIN = 1000;
const TOKENS_MAX = 25_000;

/** Arguments of the tool `search_passages`. */
export const SearchInput = z.object({
  query: z.string().trim().min(1).max(QUERY_CHARS_MAX).describe("The question, in your own words."),
  top_k: z.int().min(1).max(TOP_K_MAX).default(TOP_K_DEFAULT).describe("Maximum number of passages."),
  expand: Expand.optional().describe(
    "More text around each passage: neighbours, or a number of chunks on each side. Default: the passage alone.",
  ),
  max_tokens: z
    .int()
    .min(TOKENS_MIN)
    .max(TOKENS_MAX)
    .default(ANSWER_TOKENS)
    .describe(`Maximum number of tokens in the answer, as ${TOKENIZER} counts them.`),
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
export const Place = z.object({
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
      version: z.number().describe("Of the document's text; the locations below are right for this one."),
      ...Place.shape,
      text: z.string(),
      hits: z
        .array(z.object({ chunk_id: z.string(), score: z.number(), start: Count, end: Count }))
        .optional()
        .describe("With expand: the chunks found within the text, best first."),
    }),
  ),
  tokenizer: z.string().describe("What counts the tokens for max_tokens, over the results as JSON."),
  fallback: SearchFallback.optional(),
  pending: Pending,
});
export type SearchOutput = z.infer<typeof SearchOutput>;
