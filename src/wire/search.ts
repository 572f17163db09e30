import { z } from "zod";
import { ContextFields, PassageFields } from "./context.ts";
import { type FileCounts, pendingWords } from "./file-state.ts";
import { readFilter } from "./filter.ts";
import { Location } from "./location.ts";
import { Count, NumberRange, WireInteger } from "./primitives.ts";

export const TOP_K_DEFAULT = 5;
export const TOP_K_MAX = 100;
/** Longest query in characters. People and models ask far less, and each term costs a lookup. */
export const QUERY_CHARS_MAX = 8000;

/**
 * Body of `POST /rag/query`: either `doc_id`, or `collection_id` with `owner_id`.
 * The operation decides which of them is missing or superfluous, because the status codes differ (400, 422).
 */
export const SearchBody = z
  .object({
    query: z.string().trim().min(1).max(QUERY_CHARS_MAX),
    doc_id: z.string().min(1).max(200).optional(),
    collection_id: z.string().min(1).max(200).optional(),
    /** Empty and null count as absent. */
    owner_id: z
      .string()
      .max(256)
      .nullish()
      .transform((ownerId) => ownerId || undefined),
    score: z.number().min(0).max(1).optional(),
    /** Conditions on the metadata of resources (an addition). */
    filter: z
      .unknown()
      .transform(readFilter)
      .meta({ type: "object", description: "Conditions on metadata; docs/API.md has the forms." })
      .optional(),
    top_k: WireInteger.pipe(z.int().min(1).max(TOP_K_MAX)).default(TOP_K_DEFAULT),
    ...ContextFields,
  })
  .meta({ id: "SearchBody" });
export type SearchBody = z.infer<typeof SearchBody>;

/** One matching chunk. `score` in [0, 1]; `version` counts how often the resource was chunked, from 1. */
export const SearchResult = z.object({
  id: z.string(),
  version: z.number(),
  score: z.number(),
  payload: z.object({
    resourceId: z.string(),
    collectionId: z.string(),
    content: z.string(),
    ownerId: z.string(),
    /** Title of the resource (an addition). */
    title: z.string().optional(),
    /** The headings above the chunk, outermost first (an addition). */
    headings: z.array(z.string()).optional(),
    /** Title and headings in one line (an addition). */
    path: z.string().optional(),
    /** Beginning and end of `content` that come from another part of the document (additions). */
    before: z.string().optional(),
    after: z.string().optional(),
    /** UTF-16 offsets into the resource's content of the text between `before` and `after` (additions). */
    start: Count.optional(),
    end: Count.optional(),
    /** Lines and pages of that text (additions). */
    lines: NumberRange.optional(),
    pages: NumberRange.optional(),
    /** Where the source file has that text (an addition). */
    locations: z.array(Location).optional(),
    /** SHA-256 of the resource's content in this version, as UTF-8 (an addition). */
    sha256: z.string().optional(),
    /** The url of a file or link resource (an addition). */
    fileUrl: z.string().optional(),
    /** The string `path` of the resource's metadata: the file in its synced folder (an addition). */
    filePath: z.string().optional(),
    /** The string of that name in the resource's metadata: context for its text (an addition). */
    folderDescription: z.string().optional(),
    /** The requested additions to the hits. */
    ...PassageFields,
  }),
});
export type SearchResult = z.infer<typeof SearchResult>;

/** How a search was done because a model was missing or late. The one that leaves out more comes first. */
export const SearchFallback = z
  .enum(["words", "sentences"])
  .describe(
    "Present if a model is missing or did not answer in time. words: searched by words alone. sentences: ranked without the reranking model.",
  );
export type SearchFallback = z.infer<typeof SearchFallback>;

/** Returns the fallback of answers shown together: the one that leaves out more. */
export function joinFallbacks(
  answers: readonly Pick<SearchAnswer, "fallback">[],
): SearchFallback | undefined {
  return SearchFallback.options.find((each) => answers.some(({ fallback }) => fallback === each));
}

/** States a fallback for a person or a language model. */
export const FALLBACK_TEXT: Readonly<Record<SearchFallback, string>> = {
  words: "Searched by words alone, not by meaning: the embedding model is missing or did not answer in time.",
  sentences: "Ranked without the reranking model, which did not answer in time.",
};

/** Documents in the range of a search that wait (an addition). */
export const Pending = z
  .object({
    read: Count.describe("Documents whose latest text is being read, or waits for it."),
    embed: Count.describe(
      "Documents of which passages are not found by meaning yet; those of the first 10,000 such passages, and 0 in fastest.",
    ),
    more: z.literal(true).optional().describe("At least 10,000 such passages: `embed` is a lower bound."),
  })
  .describe("At most a second old.")
  .meta({ id: "Pending" });
export type Pending = z.infer<typeof Pending>;

/** Returns the documents that wait in the ranges of answers shown together. */
export function joinPending(answers: readonly Pick<SearchAnswer, "pending">[]): Pending {
  const sum = (count: "read" | "embed"): number =>
    answers.reduce((total, { pending }) => total + (pending?.[count] ?? 0), 0);
  const isMore = answers.some(({ pending }) => pending?.more === true);
  return { read: sum("read"), embed: sum("embed"), ...(isMore && { more: true }) };
}

/** States for a person or a language model what waits; undefined: nothing does. `folders` are those of a daemon. */
export function pendingText(
  pending: Pending,
  folders: readonly Pick<FileCounts, "reading" | "waiting">[],
): string | undefined {
  const parts = pendingWords(pending, folders);
  return parts.length === 0 ? undefined : `Not everything is searchable yet: ${parts.join(", ")}.`;
}

/** Answer of a search: `results` by descending score, ties by id; `text` is their contents joined by a blank line. */
export const SearchAnswer = z.object({
  success: z.literal(true),
  text: z.string(),
  results: z.array(SearchResult),
  /** An addition. A service of another kind may use the name differently. */
  fallback: SearchFallback.optional().catch(undefined),
  /** An addition, as above. */
  pending: Pending.optional().catch(undefined),
});
export type SearchAnswer = z.infer<typeof SearchAnswer>;
