import { z } from "zod";
import { counted } from "../lib/counted.ts";
import { Cursor, NextCursor, readFitting } from "./budget.ts";
import type { Reached } from "./caller.ts";
import type { KnownFiles } from "./known-files.ts";
import { listSources, type McpSource } from "./sources.ts";
import type { ToolOutput } from "./tool-result.ts";

/** Most sources per answer. */
const SOURCES_MAX = 100;

/** Arguments of the tool `list_sources`. */
export const SourcesInput = z.object({
  cursor: Cursor,
});
export type SourcesInput = z.infer<typeof SourcesInput>;

/** Result of the tool `list_sources`. */
export const SourcesOutput = z.object({
  sources: z.array(
    z.object({
      folder: z.string().nullable().describe("The synced folder; null for documents of another origin."),
      owner_id: z.string(),
      collection_id: z.string(),
      collection: z.string().nullable().describe("The retrieval tier."),
      documents: z.number().nullable(),
      chunks: z.number().nullable(),
    }),
  ),
  next_cursor: NextCursor,
});
export type SourcesOutput = z.infer<typeof SourcesOutput>;

/** Lists a page of the searchable sources with their counts. */
export async function describeSources(
  reached: Reached,
  files: KnownFiles,
  { cursor }: SourcesInput,
  signal: AbortSignal,
): Promise<ToolOutput<SourcesOutput>> {
  const { entries, nextCursor } = await readFitting(SOURCES_MAX, async (limit) => {
    const page = await listSources(reached, files, { limit, cursor }, signal);
    return { entries: page.sources, nextCursor: page.nextCursor };
  });
  const lines = entries.map(lineOf);
  if (lines.length === 0) lines.push("The knowledge base is empty.");
  if (nextCursor !== null) lines.push(`[More sources: call list_sources with cursor ${nextCursor}.]`);
  return { data: { sources: [...entries], next_cursor: nextCursor }, text: lines.join("\n") };
}

function lineOf({ folder, owner_id, collection, collection_id, documents, chunks }: McpSource): string {
  const counts =
    documents === null ? "" : `: ${counted(documents, "document")}, ${counted(chunks ?? 0, "chunk")}`;
  const name = folder === null ? `owner ${owner_id}` : `${folder} (owner ${owner_id})`;
  return `${name}, collection ${collection ?? collection_id}${counts}`;
}
