import { z } from "zod";
import { Count, Tier, WireInteger } from "./primitives.ts";

/** Owners per page by default. */
const OWNERS_DEFAULT = 100;
export const OWNERS_MAX = 1000;

/** Query string of `GET /api/rag/owners` (an addition). */
export const OwnersQuery = z.object({
  limit: WireInteger.pipe(z.int().min(1).max(OWNERS_MAX)).default(OWNERS_DEFAULT),
  /** `nextCursor` of the previous page. */
  cursor: z
    .string()
    .max(2000)
    .regex(/^[0-9a-f]{24}\.[A-Za-z0-9_-]*$/, "expected the nextCursor of the page before")
    .optional(),
});
export type OwnersQuery = z.infer<typeof OwnersQuery>;

/** One owner's part of a collection, which is what a collection search covers. */
export const OwnerEntry = z
  .object({
    ownerId: z.string(),
    collectionId: z.string(),
    details: Tier,
    resources: Count,
    chunks: Count,
  })
  .meta({ id: "Owner" });
export type OwnerEntry = z.infer<typeof OwnerEntry>;

/** Answer of `GET /api/rag/owners`: owners with resources in the account's collections, by collection and then by owner. */
export const OwnersAnswer = z.object({
  success: z.literal(true),
  message: z.string().default(""),
  data: z.object({ owners: z.array(OwnerEntry), nextCursor: z.string().nullable() }),
});
export type OwnersAnswer = z.infer<typeof OwnersAnswer>;
