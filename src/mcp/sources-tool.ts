import { z } from "zod";
import type { Reached } from "./caller.ts";
import type { KnownFiles } from "./known-files.ts";
import { listSources, type McpSource } from "./sources.ts";
import type { ToolOutput } from "./tool-result.ts";

/** Arguments of the tool `list_sources`: none. */
export const SourcesInput = z.object({});

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
  more: z.boolean().describe("Whether more sources exist than are listed."),
});
export type SourcesOutput = z.infer<typeof SourcesOutput>;

/** Lists the searchable sources with their counts. */
export async function describeSources(
  reached: Reached,
  files: KnownFiles,
  signal: AbortSignal,
): Promise<ToolOutput<SourcesOutput>> {
  const { sources, more } = await listSources(reached, files, signal);
  const lines = sources.map(lineOf);
  if (lines.length === 0) lines.push("The knowledge base is empty.");
  if (more) lines.push("More sources exist that are not listed.");
  return { data: { sources: [...sources], more }, text: lines.join("\n") };
}

function lineOf({ folder, owner_id, collection, collection_id, documents, chunks }: McpSource): string {
  const counts =
    documents === null ? "" : `: ${counted(documents, "document")}, ${counted(chunks ?? 0, "chunk")}`;
  const name = folder === null ? `owner ${owner_id}` : `${folder} (owner ${owner_id})`;
  return `${name}, collection ${collection ?? collection_id}${counts}`;
}

function counted(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? "" : "s"}`;
}
