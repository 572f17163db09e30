import { z } from "zod";
import type { Reached } from "./caller.ts";
import type { KnownFiles } from "./known-files.ts";
import { listSources, type McpSource } from "./sources.ts";
import type { Told } from "./tool-result.ts";

/** Arguments of the tool `list_sources`: none. */
export const SourcesInput = z.object({});

/** What the tool `list_sources` gives. */
export const SourcesOutput = z.object({
  sources: z.array(
    z.object({
      folder: z.string().nullable().describe("The synced folder; null for documents made elsewhere."),
      owner_id: z.string(),
      collection_id: z.string(),
      collection: z.string().nullable().describe("The retrieval tier."),
      documents: z.number().nullable(),
      chunks: z.number().nullable(),
    }),
  ),
  more: z.boolean().describe("There are more sources than are listed."),
});
export type SourcesOutput = z.infer<typeof SourcesOutput>;

/** Lists what can be searched, with its counts. */
export async function describeSources(
  reached: Reached,
  files: KnownFiles,
  signal: AbortSignal,
): Promise<Told<SourcesOutput>> {
  const { sources, more } = await listSources(reached, files, signal);
  const lines = sources.map(lineOf);
  if (lines.length === 0) lines.push("Nothing is in the knowledge base yet.");
  if (more) lines.push("There are more, which are not listed.");
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
