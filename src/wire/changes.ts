import { z } from "zod";
import { answerOf } from "./answers.ts";
import { Count, Id, Time, WireInteger } from "./primitives.ts";

/** Most changes per page. */
export const CHANGES_MAX = 1000;
/** The cursor that names the end of the feed, whatever it is. */
export const NOW = "now";

const Cursor = z.string().max(64);

/** Query string of `GET /v1/changes` (an addition). */
export const ChangesQuery = z.object({
  cursor: Cursor.min(1)
    .optional()
    .describe(
      `cursor of an earlier answer, or \`${NOW}\`. Default: the oldest change that is stored. The header Last-Event-ID precedes it.`,
    ),
  limit: WireInteger.pipe(z.int().min(1).max(CHANGES_MAX))
    .default(100)
    .describe("Changes per page. A stream has no pages."),
});
export type ChangesQuery = z.infer<typeof ChangesQuery>;

/** One change of a document, with its state after the change. */
export const Change = z
  .object({
    cursor: Cursor.describe("Continues after this change."),
    type: z.enum(["document.created", "document.updated", "document.deleted"]),
    timestamp: Time,
    _id: Id,
    collectionId: Id,
    ownerId: z.string(),
    version: Count.describe("Of the text; 0 until there is one."),
    revision: z.int().min(1).describe("Grows with every change of the document."),
    status: z.enum(["chunked", "queued", "error", "deleted"]),
    sha256: z.string().nullable().describe("Of the text as UTF-8; null without one."),
    path: z.string().nullable().describe("`path` of the metadata, if it is a string."),
  })
  .meta({ id: "Change" });
export type Change = z.infer<typeof Change>;

/** Data of the event `ready`, the first one of a stream. */
export const ChangesReady = z.object({
  cursor: Cursor.nullable().describe("Where the stream starts; null: at the oldest change that is stored."),
});

/** Answer of `GET /v1/changes`. */
export const ChangesAnswer = answerOf(
  z.object({
    changes: z.array(Change).describe("In the order in which they were made."),
    cursor: Cursor.describe("Continues after this page."),
    more: z.boolean().describe("Whether further changes are stored already."),
  }),
).meta({ id: "ChangesAnswer" });
export type ChangesAnswer = z.infer<typeof ChangesAnswer>;
