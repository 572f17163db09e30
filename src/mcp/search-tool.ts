import { z } from "zod";
import { byRank } from "../lib/by-rank.ts";
import { KbsyncError } from "../lib/failure.ts";
import { NEIGHBOURS_MAX } from "../wire/context.ts";
import type { SourceStatus } from "../wire/daemon-status.ts";
import {
  FALLBACK_TEXT,
  joinFallbacks,
  joinPending,
  pendingText,
  QUERY_CHARS_MAX,
  type SearchAnswer,
  type SearchResult,
  TOP_K_MAX,
} from "../wire/search.ts";
import { ANSWER_TOKENS, cutText, fitsAlone, fitting } from "./budget.ts";
import type { Reached } from "./caller.ts";
import { linkOf } from "./document-link.ts";
import type { KnownFiles } from "./known-files.ts";
import { withDocument } from "./named-document.ts";
import type { SearchRequest } from "./service.ts";
import { findSources } from "./sources.ts";
import type { ToolOutput } from "./tool-result.ts";

/*
 * The tools `search` and `fetch` have the results that ChatGPT (apps, company knowledge, deep research) requires of a server; a client
 * that sends `query` or `id` alone is served. ChatGPT reads the result as structured content and as JSON in a single text, and cites
 * only what has a `url`: https://platform.openai.com/docs/mcp and
 * https://developers.openai.com/apps-sdk/build/mcp-server#company-knowledge-compatibility (both as of June 2026).
 */

/** Passages of an answer by default. */
const PASSAGES_DEFAULT = 10;
/** Fewest and most tokens of an answer: a passage with its location, and what Claude Code takes of a tool. */
const TOKENS_MIN = 1000;
const TOKENS_MAX = 25_000;
/** Tokens asked of each service with `expand`, as a multiple of those of the answer: so this answer is cut here, and says so. */
const SOURCE_SHARE = 2;
/** Longest text of a passage without `expand`. */
const PASSAGE_CHARS_MAX = 8000;
/** Longest title in a result. */
const TITLE_CHARS_MAX = 200;

/** Arguments of the tool `search`. */
export const SearchInput = z.object({
  query: z.string().trim().min(1).max(QUERY_CHARS_MAX).describe("The question, in your own words."),
  source: z.string().min(1).max(4096).optional().describe("A folder or owner_id from list_sources."),
  document: z.string().min(1).max(4096).optional().describe("An id of a result, or the path of a file."),
  filter: z
    .record(z.string(), z.unknown())
    .optional()
    .describe(
      'Conditions on metadata: {"lang":"en"}, {"year":{"gte":2020}}, {"tags":{"in":["a","b"]}}, and/or/not.',
    ),
  top_k: z.int().min(1).max(TOP_K_MAX).default(PASSAGES_DEFAULT).describe("Most passages."),
  expand: z
    .int()
    .min(1)
    .max(NEIGHBOURS_MAX)
    .optional()
    .describe("Adds so many chunks before and after each passage."),
  max_tokens: z
    .int()
    .min(TOKENS_MIN)
    .max(TOKENS_MAX)
    .default(ANSWER_TOKENS)
    .describe("Most tokens of the answer."),
});
export type SearchInput = z.infer<typeof SearchInput>;

/** First and last number, from 1 on. */
const Range = z.object({ first: z.number(), last: z.number() });

const Passage = z.object({
  id: z.string().describe("Of its document, for fetch."),
  title: z.string(),
  url: z.string().describe("For citations."),
  text: z.string(),
  score: z.number().describe("Relevance from 0 to 1, the same in every source."),
  owner_id: z.string(),
  folder: z.string().optional(),
  path: z.string().optional().describe("File, below its folder."),
  folder_description: z.string().optional(),
  headings: z.string().optional(),
  version: z.number(),
  start: z.number().optional().describe("Offset in the document's text, for fetch."),
  end: z.number().optional(),
  lines: Range.optional(),
  // The form of each is the service's: spelling it out would take a fifth of all tools' descriptions.
  locations: z
    .array(z.record(z.string(), z.unknown()))
    .optional()
    .describe("Pages, slides, sheet and rows, or e-mail part."),
});

/** Result of the tool `search`. */
export const SearchOutput = z.object({
  results: z.array(Passage),
  more: z.boolean().describe("There may be others: raise top_k or max_tokens."),
  note: z.string().optional().describe("What limits this answer: a missing model, documents that wait."),
});
export type SearchOutput = z.infer<typeof SearchOutput>;

/** Searches the selected sources concurrently and returns the best passages of all, as many as fit into an answer. */
export async function searchPassages(
  reached: Reached,
  files: KnownFiles,
  input: SearchInput,
  signal: AbortSignal,
): Promise<ToolOutput<SearchOutput>> {
  const { query, source, document, filter, top_k, expand, max_tokens: tokensMax } = input;
  const fields = {
    query,
    filter,
    top_k,
    ...(expand !== undefined && { expand, max_tokens: tokensMax * SOURCE_SHARE }),
  };
  const ask = (target: SearchTarget): Promise<SearchAnswer> =>
    reached.service.search({ ...fields, ...target }, signal);
  if (document !== undefined && source !== undefined) throw namedTwice();
  const askAll = async (): Promise<SearchAnswer[]> => {
    if (document !== undefined)
      return [await withDocument(reached, files, document, (doc_id) => ask({ doc_id }))];
    const found = await findSources(reached, files, source, signal);
    return Promise.all(found.map(({ collection_id, owner_id }) => ask({ collection_id, owner_id })));
  };
  const [answers, { folders, problem }] = await Promise.all([askAll(), foldersOf(reached, signal)]);
  const found = answers.flatMap(({ results }) => results).toSorted(byRank);
  const passages = found.slice(0, top_k).map((hit) => passageOf(hit, files));
  const [best, ...others] = passages;
  const first = best === undefined ? [] : [cutToFit(best, tokensMax)];
  const results = [...fitting([...first, ...others], tokensMax)];
  const isCut = first[0]?.text !== best?.text;
  const fallback = joinFallbacks(answers);
  const waiting = pendingText(joinPending(answers), folders);
  const notes = [
    ...(fallback === undefined ? [] : [FALLBACK_TEXT[fallback]]),
    ...(waiting === undefined ? [] : [waiting]),
    ...(problem === undefined ? [] : [problem]),
  ];
  const data = {
    results,
    more: isCut || results.length < found.length || found.length >= top_k,
    ...(notes.length > 0 && { note: notes.join(" ") }),
  };
  return { data, text: JSON.stringify(data) };
}

/**
 * Returns the folders of the daemon, or why it does not say: a search needs the service alone. Without a daemon, or for a key that
 * may not see it, only what waits at the service is known.
 */
async function foldersOf(
  { daemon }: Reached,
  signal: AbortSignal,
): Promise<{ readonly folders: readonly SourceStatus[]; readonly problem?: string }> {
  try {
    return { folders: (await daemon?.status(signal))?.sources ?? [] };
  } catch (error) {
    if (!(error instanceof KbsyncError)) throw error;
    return { folders: [], problem: `Not everything here may be up to date: ${error.message}.` };
  }
}

/** The range of one search. */
type SearchTarget = Pick<SearchRequest, "doc_id" | "collection_id" | "owner_id">;

type Passage = z.infer<typeof Passage>;

/** Returns a hit as a passage, with the file that its document was made from. */
function passageOf({ score, version, payload }: SearchResult, files: KnownFiles): Passage {
  const { resourceId: id, content, ownerId, title, path: headings, start, end, lines, locations } = payload;
  const file = files.fileOf(id);
  const path = file?.path ?? payload.filePath;
  return {
    id,
    title: cutText(title || (path ?? id), TITLE_CHARS_MAX),
    url: linkOf({ id, url: payload.fileUrl }, files),
    text: cutText(content, payload.hits === undefined ? PASSAGE_CHARS_MAX : content.length),
    score,
    owner_id: ownerId,
    folder: file?.folder,
    path,
    folder_description: payload.folderDescription,
    headings,
    version,
    start,
    end,
    lines,
    locations,
  };
}

/** Cuts the text of a passage that alone is too long for an answer. */
function cutToFit(passage: Passage, tokensMax: number): Passage {
  let { text } = passage;
  while (!fitsAlone({ ...passage, text }, tokensMax) && text.length > 1)
    text = cutText(text, Math.floor(text.length / 2));
  return { ...passage, text };
}

function namedTwice(): KbsyncError {
  return new KbsyncError("a document was named, and a source as well", {
    code: "too_much_named",
    hint: "Name one of them.",
  });
}
