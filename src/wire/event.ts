import { z } from "zod";

/**
 * Types of the events that registered endpoints receive. `resource.updated` reports a change that makes no version, as of a title or
 * metadata; only endpoints that name it receive it.
 */
export const EventType = z
  .enum(["resource.chunked", "resource.error", "resource.deleted", "resource.updated"])
  .meta({ id: "EventType" });
export type EventType = z.infer<typeof EventType>;

/** Body of an event, after Standard Webhooks. The record itself can be read by its id. */
export const ResourceEvent = z.object({
  type: EventType,
  timestamp: z.string(),
  data: z.object({
    _id: z.string(),
    title: z.string(),
    collectionId: z.string(),
    ownerId: z.string(),
    version: z.number(),
    /** Grows with every change of the resource: orders its events. */
    revision: z.number(),
    /** SHA-256 of the content; null: it has no text yet. */
    sha256: z.string().nullable(),
    path: z.string().nullable(),
    chunks: z.number(),
    status: z.string(),
    /** The reason, for `resource.error`. */
    message: z.string().optional(),
  }),
});
export type ResourceEvent = z.infer<typeof ResourceEvent>;
