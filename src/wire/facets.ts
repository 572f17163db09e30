import { z } from "zod";
import { answerOf } from "./answers.ts";
import { type Filter, PATH_CHARS_MAX, readFilter } from "./filter.ts";
import { Count, WireInteger } from "./primitives.ts";

/** Most fields per answer, and its default. */
export const FACETS_MAX = 50;

/** A filter as JSON. */
export const filterText = z
  .string()
  .transform((text, context): Filter => readFilter(parsed(text), context))
  .meta({ type: "string", description: "A filter as JSON; only resources that match it are counted." });

const fields = z
  .string()
  .transform((text) => [...new Set(text.split(","))])
  .pipe(z.array(z.string().min(1).max(PATH_CHARS_MAX)).min(1).max(FACETS_MAX))
  .meta({ type: "string", description: "Paths of metadata, separated by commas. Default: all." });

/** Query string of `GET /api/rag/facets` (an addition). */
export const FacetsQuery = z.object({
  collectionId: z.string().min(1),
  ownerId: z.string().min(1),
  fields: fields.optional(),
  filter: filterText.optional(),
  limit: WireInteger.pipe(z.int().min(1).max(FACETS_MAX)).default(FACETS_MAX),
  cursor: z.string().max(2000).optional().describe("nextCursor of the previous page."),
});
export type FacetsQuery = z.infer<typeof FacetsQuery>;

/** A field of the metadata with its values. */
export const Facet = z
  .object({
    field: z.string().describe("Path, as in a filter."),
    distinct: Count.describe(
      "Number of different values; values has only the most frequent ones if there are more.",
    ),
    values: z
      .array(
        z.object({
          value: z.union([z.string(), z.number(), z.boolean(), z.null()]),
          count: Count.describe("Resources that have it."),
        }),
      )
      .describe("By falling count, then by value."),
  })
  .meta({ id: "Facet" });
export type Facet = z.infer<typeof Facet>;

/** Answer of `GET /api/rag/facets`. */
export const FacetsAnswer = answerOf(
  z.object({ facets: z.array(Facet), nextCursor: z.string().nullable() }),
).meta({ id: "FacetsAnswer" });
export type FacetsAnswer = z.infer<typeof FacetsAnswer>;

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined; // refused as no object
  }
}
