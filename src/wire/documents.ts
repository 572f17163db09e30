import { z } from "zod";
import { answerOf } from "./answers.ts";
import { DESCRIPTION_CHARS } from "./constants.ts";
import { Count, WireInteger } from "./primitives.ts";

/** Most documents per answer. */
export const DOCUMENTS_MAX = 1000;
const DOCUMENTS_DEFAULT = 100;

const Status = z.enum(["queued", "chunked", "error"]);

/** Query string of `GET /api/rag/documents` (an addition). */
export const DocumentsQuery = z.object({
  collectionId: z.string().min(1),
  ownerId: z.string().min(1),
  status: Status.optional(),
  text: z
    .string()
    .min(1)
    .max(500)
    .optional()
    .describe(
      "Only documents whose title, description, address or metadata contain each of these words, whatever the case.",
    ),
  limit: WireInteger.pipe(z.int().min(1).max(DOCUMENTS_MAX)).default(DOCUMENTS_DEFAULT),
  cursor: z.string().max(2000).optional().describe("nextCursor of the previous page."),
});
export type DocumentsQuery = z.infer<typeof DocumentsQuery>;

/** A document in a list, without its text. */
export const DocumentEntry = z
  .object({
    _id: z.string(),
    title: z.string(),
    description: z
      .string()
      .describe(`At most ${DESCRIPTION_CHARS} characters of it, without kbsync's marker.`),
    url: z.string().nullable(),
    path: z.string().nullable().describe("The metadata `path`, as synced files have it."),
    status: Status,
    code: z.string().nullable().describe("Why it failed, if its status is error."),
    message: z.string().nullable(),
    warning: z.string().nullable().describe("What could not be read of it."),
    createdAt: z.string(),
    updatedAt: z.string(),
    version: Count,
    chunks: Count,
  })
  .meta({ id: "DocumentEntry" });
export type DocumentEntry = z.infer<typeof DocumentEntry>;

/** Answer of `GET /api/rag/documents`. */
export const DocumentsAnswer = answerOf(
  z.object({
    documents: z.array(DocumentEntry),
    total: Count.describe("Documents that match, on all pages, counted with the first page."),
    statuses: z
      .object({ queued: Count, chunked: Count, error: Count })
      .describe("The same by status, whichever status the query names."),
    nextCursor: z.string().nullable(),
  }),
).meta({ id: "DocumentsAnswer" });
export type DocumentsAnswer = z.infer<typeof DocumentsAnswer>;
