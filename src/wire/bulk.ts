import { z } from "zod";
import { Count, Id } from "./primitives.ts";
import { CreateBody } from "./resource.ts";

/** A line of `POST /api/rag/resources/bulk`: a create body, and an idempotency key of its own. */
export const BulkLine = CreateBody.extend({ idempotency_key: z.string().min(1).max(255).optional() }).meta({
  id: "BulkLine",
});
export type BulkLine = z.infer<typeof BulkLine>;

/** What came of a line: the status and the failure are those that a create of its own would have been answered. */
export const BulkOutcome = z
  .object({
    /** Counts from 1, blank lines too. */
    line: z.int().min(1),
    success: z.boolean(),
    status: z.int(),
    data: z.object({ _id: Id, collectionId: Id, ownerId: z.string() }).optional(),
    message: z.string().optional(),
    error: z
      .object({ code: z.string(), hint: z.string().optional(), field: z.string().optional() })
      .optional(),
  })
  .meta({ id: "BulkOutcome" });
export type BulkOutcome = z.infer<typeof BulkOutcome>;

/** The last line of the answer: without it the answer was broken off. */
export const BulkSummary = z
  .object({
    summary: z.object({
      lines: Count,
      created: Count,
      /** Lines answered from the note of an earlier one with their key: nothing was made. */
      repeated: Count,
      failed: Count,
      /** Why no further line was read, where the body did not end well. */
      message: z.string().optional(),
    }),
  })
  .meta({ id: "BulkSummary" });
export type BulkSummary = z.infer<typeof BulkSummary>;
