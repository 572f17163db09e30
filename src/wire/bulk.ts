import { z } from "zod";
import { Count, Id } from "./primitives.ts";
import { CreateBody } from "./resource.ts";

/** A line of `POST /api/rag/resources/bulk`: a create body with an optional idempotency key. */
export const BulkLine = CreateBody.extend({ idempotency_key: z.string().min(1).max(255).optional() }).meta({
  id: "BulkLine",
});
export type BulkLine = z.infer<typeof BulkLine>;

/** Result of a line, with the status and failure that a separate create would return. */
export const BulkOutcome = z
  .object({
    /** Line number from 1, blank lines included. */
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

/** The last line of the answer. Its absence means that the answer is incomplete. */
export const BulkSummary = z
  .object({
    summary: z.object({
      lines: Count,
      created: Count,
      /** Lines that repeat an earlier idempotency key and created nothing. */
      repeated: Count,
      failed: Count,
      /** Why reading stopped, if the body was not read to its end. */
      message: z.string().optional(),
    }),
  })
  .meta({ id: "BulkSummary" });
export type BulkSummary = z.infer<typeof BulkSummary>;
