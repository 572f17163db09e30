import { z } from "zod";
import { answerOf } from "./answers.ts";
import { OWNER_CHARS_MAX } from "./constants.ts";
import { Count } from "./primitives.ts";

/** Most documents of one request. */
export const ERASED_MAX = 1000;

/** Body of `POST /api/rag/erase/resources` (an addition). */
export const EraseResourcesBody = z
  .strictObject({
    resource_ids: z
      .array(z.string().min(1).max(100))
      .min(1)
      .max(ERASED_MAX)
      .describe("Ids of resources, live or deleted."),
  })
  .meta({ id: "EraseResourcesBody" });

/** Body of `POST /api/rag/erase/owner` (an addition). */
export const EraseOwnerBody = z
  .strictObject({ owner_id: z.string().min(1).max(OWNER_CHARS_MAX) })
  .meta({ id: "EraseOwnerBody" });

/** Something that still holds what was erased, or may hold it. */
export const Remainder = z
  .object({
    kind: z.enum(["upload", "thread", "agent", "copy", "backup", "log", "service"]),
    name: z.string().describe("An address, an id, a path or a command."),
    reason: z.string(),
  })
  .readonly()
  .meta({ id: "Remainder" });
export type Remainder = z.infer<typeof Remainder>;

/** The counts of an erasure at a service, and the rest. */
export const ErasureReport = z
  .object({
    documents: Count.describe("Records of resources, live or deleted."),
    chunks: Count.describe("Chunks, with their words and vectors."),
    files: Count.describe("Uploaded files."),
    requests: Count.describe("Notes of requests, for their repetition under an `Idempotency-Key`."),
    messages: Count.describe("Webhook messages that were removed, or lost the title of a resource."),
    turns: Count.describe("Questions of chat threads with their answers."),
    images: Count.describe("Images of chat threads."),
    remains: z.array(Remainder).readonly(),
  })
  .readonly()
  .meta({ id: "ErasureReport" });
export type ErasureReport = z.infer<typeof ErasureReport>;

/** Answer of both operations. */
export const ErasureAnswer = answerOf(ErasureReport).meta({ id: "ErasureAnswer" });
