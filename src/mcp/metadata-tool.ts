import { z } from "zod";
import { KbsyncError } from "../lib/failure.ts";
import { FACET_VALUES_MAX } from "../wire/constants.ts";
import { type Facet, FACETS_MAX } from "../wire/facets.ts";
import { Cursor, cutText, NextCursor, readFitting } from "./budget.ts";
import type { Reached } from "./caller.ts";
import type { KnownFiles } from "./known-files.ts";
import { findSource } from "./sources.ts";
import type { ToolOutput } from "./tool-result.ts";

/** Values per field if all fields are listed: enough to see what a field is for. */
const VALUES_FEW = 10;
/** Longest value in the text. Descriptions of folders are longer. */
const VALUE_CHARS_MAX = 100;

/** Arguments of the tool `list_metadata`. */
export const MetadataInput = z.object({
  source: z
    .string()
    .min(1)
    .max(4096)
    .optional()
    .describe("A folder or owner_id from list_sources. Needed if there are several sources."),
  collection: z.string().min(1).max(200).optional().describe("A collection: its tier, or its id."),
  fields: z
    .array(
      z
        .string()
        .min(1)
        .max(260)
        .regex(/^[^,]+$/),
    )
    .min(1)
    .max(FACETS_MAX)
    .optional()
    .describe(
      `Only these fields, with up to ${FACET_VALUES_MAX} values each. Default: all, with ${VALUES_FEW}.`,
    ),
  filter: z
    .record(z.string(), z.unknown())
    .optional()
    .describe("Counts only documents that match; as in search_passages."),
  cursor: Cursor,
});
export type MetadataInput = z.infer<typeof MetadataInput>;

/** Result of the tool `list_metadata`. */
export const MetadataOutput = z.object({
  fields: z.array(
    z.object({
      field: z.string(),
      distinct: z.number().describe("Number of different values."),
      values: z
        .array(
          z.object({
            value: z.union([z.string(), z.number(), z.boolean(), z.null()]),
            documents: z.number(),
          }),
        )
        .describe("The most frequent ones."),
    }),
  ),
  next_cursor: NextCursor,
});
export type MetadataOutput = z.infer<typeof MetadataOutput>;

/** Lists what filters can name in a source: the fields of metadata with their values. */
export async function listMetadata(
  reached: Reached,
  files: KnownFiles,
  { fields, filter, cursor, ...choice }: MetadataInput,
  signal: AbortSignal,
): Promise<ToolOutput<MetadataOutput>> {
  const { collection_id: collectionId, owner_id: ownerId } = await findSource(reached, files, choice, signal);
  const valuesMax = fields === undefined ? VALUES_FEW : FACET_VALUES_MAX;
  const { entries, nextCursor } = await readFitting(FACETS_MAX, async (limit) => {
    const request = { collectionId, ownerId, fields, filter, limit, cursor };
    const page = await reached.service.facets(request, signal);
    if (page === undefined)
      throw new KbsyncError("the service does not list metadata", {
        code: "facets_unsupported",
        hint: "Filters in search_passages work with the metadata that was sent to it.",
      });
    return { entries: page.facets.map((facet) => fieldOf(facet, valuesMax)), nextCursor: page.nextCursor };
  });
  const lines = entries.map(lineOf);
  if (lines.length === 0) lines.push("The documents have no metadata.");
  if (nextCursor !== null) lines.push(`[More fields: call list_metadata with cursor ${nextCursor}.]`);
  return { data: { fields: [...entries], next_cursor: nextCursor }, text: lines.join("\n") };
}

type Field = MetadataOutput["fields"][number];

function fieldOf({ field, distinct, values }: Facet, valuesMax: number): Field {
  const most = values.slice(0, valuesMax);
  return { field, distinct, values: most.map(({ value, count }) => ({ value, documents: count })) };
}

function lineOf({ field, distinct, values }: Field): string {
  const shown = values.map(
    ({ value, documents }) => `${cutText(JSON.stringify(value), VALUE_CHARS_MAX)} (${documents})`,
  );
  const more = distinct > values.length ? `, and ${distinct - values.length} more` : "";
  return `${field}: ${shown.join(", ")}${more}`;
}
