import { z } from "zod";
import { byRank } from "../lib/by-rank.ts";
import { codeOf } from "../lib/failure.ts";
import { QUERY_CHARS_MAX } from "../wire/search.ts";
import { cutText, fitting } from "./budget.ts";
import type { Reached } from "./caller.ts";
import { linkOf } from "./document-link.ts";
import type { KnownFiles } from "./known-files.ts";
import { readDocument } from "./read-tool.ts";
import { targetOf } from "./search-tool.ts";
import { findSources } from "./sources.ts";
import type { ToolOutput } from "./tool-result.ts";

/*
 * The tools `search` and `fetch` have the inputs and results that ChatGPT (apps, company knowledge, deep research) requires of
 * a server. ChatGPT checks that their inputs have exactly these fields (results may have more), reads the result as structured content and as JSON in a
 * single text, and cites only what has a `url`:
 * https://platform.openai.com/docs/mcp and
 * https://developers.openai.com/apps-sdk/build/mcp-server#company-knowledge-compatibility (both as of June 2026).
 */

/** Most documents that a search returns. */
const DOCUMENTS_MAX = 10;
/** Passages asked of each source: several may come from one document. */
const PASSAGES_MAX = 50;
/** Longest title in a result. */
const TITLE_CHARS_MAX = 200;
/** Characters of a document per `fetch`: some 12,500 tokens. Claude Code takes 25,000 per answer. */
const TEXT_CHARS_MAX = 50_000;

/** Arguments of the tool `search`. */
export const FindInput = z.object({
  query: z.string().trim().min(1).max(QUERY_CHARS_MAX).describe("The question, in your own words."),
});
export type FindInput = z.infer<typeof FindInput>;

/** Result of the tool `search`. */
export const FindOutput = z.object({
  results: z.array(
    z.object({
      id: z.string().describe("For fetch."),
      title: z.string(),
      url: z.string().describe("Address for citations."),
    }),
  ),
});
export type FindOutput = z.infer<typeof FindOutput>;

/** Searches all sources, and returns the documents with the best passages, each once. */
export async function findDocuments(
  reached: Reached,
  files: KnownFiles,
  { query }: FindInput,
  signal: AbortSignal,
): Promise<ToolOutput<FindOutput>> {
  const { service } = reached;
  const sources = await findSources(reached, files, {}, signal);
  const answers = await Promise.all(
    sources.map((source) => service.search({ query, top_k: PASSAGES_MAX, ...targetOf(source) }, signal)),
  );
  const passages = answers.flatMap(({ results }) => results).toSorted(byRank);
  const titles = new Map<string, string | undefined>();
  for (const { payload } of passages) {
    if (titles.size === DOCUMENTS_MAX) break;
    if (!titles.has(payload.resourceId)) titles.set(payload.resourceId, payload.title);
  }
  const found = await Promise.all(
    [...titles].map(async ([id, title]) => {
      const record = await recordOf(reached, id, signal);
      if (record === undefined) return [];
      const name = title ?? files.fileOf(id)?.path ?? id;
      return [{ id, title: cutText(name, TITLE_CHARS_MAX), url: linkOf({ id, url: record.url }, files) }];
    }),
  );
  const data = { results: [...fitting(found.flat())] };
  return { data, text: JSON.stringify(data) };
}

/** Returns the record of a found document; undefined if it was deleted since. */
async function recordOf(
  { service }: Reached,
  id: string,
  signal: AbortSignal,
): Promise<{ readonly url?: string | null | undefined } | undefined> {
  try {
    const record = await service.record(id, signal);
    return record?.isDeleted === true ? undefined : (record ?? {});
  } catch (error) {
    if (codeOf(error) === "resource_not_found") return undefined;
    throw error;
  }
}

/** Arguments of the tool `fetch`. */
export const FetchInput = z.object({
  id: z.string().min(1).max(4096).describe("id of a result, or next_id of the previous part."),
});
export type FetchInput = z.infer<typeof FetchInput>;

/** Result of the tool `fetch`. */
export const FetchOutput = z.object({
  id: z.string(),
  title: z.string(),
  text: z.string(),
  url: z.string().describe("Address for citations."),
  metadata: z
    .record(z.string(), z.string())
    .describe("path, folder, updated_at, characters, and next_id if the text goes on."),
});
export type FetchOutput = z.infer<typeof FetchOutput>;

/** Returns a document's text, or a part of it: `ID#N` is the part from character N on. */
export async function fetchDocument(
  reached: Reached,
  files: KnownFiles,
  { id }: FetchInput,
  signal: AbortSignal,
): Promise<ToolOutput<FetchOutput>> {
  const [, document = id, offset = "0"] = /^(.+)#(\d{1,9})$/.exec(id) ?? [];
  const part = { document, offset: Number(offset), limit: TEXT_CHARS_MAX };
  const { data: read } = await readDocument(reached, files, part, signal);
  const { document_id, path, folder, updated_at, total_chars, next_offset, status, message } = read;
  const nextId = next_offset === null ? undefined : `${document_id}#${next_offset}`;
  const facts = {
    path,
    folder,
    updated_at,
    characters: String(total_chars),
    next_id: nextId,
    problem: status === "error" ? (message ?? "Its text could not be read.") : undefined,
  };
  const data = {
    id,
    title: read.title || (path ?? document_id),
    text:
      nextId === undefined ? read.text : `${read.text}\n\n[Cut here. fetch ${nextId} returns the next part.]`,
    url: linkOf({ id: document_id, url: read.url }, files),
    metadata: Object.fromEntries(
      Object.entries(facts).filter((fact): fact is [string, string] => typeof fact[1] === "string"),
    ),
  };
  return { data, text: JSON.stringify(data) };
}
