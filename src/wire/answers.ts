import { z } from "zod";
import { CHUNK_CHARS_MAX, CHUNK_CHARS_MIN, Count, Id, Strategy, Tier, Time } from "./primitives.ts";
import { OwnerEntry } from "./owners.ts";

/**
 * What this service promises to answer on resources and searches: a field that is always there is required, and every
 * other one is named. Clients, who also talk to other services, read with the lenient schemas of resource.ts and search.ts.
 */

/** An answer in the specification's form. */
export const answerOf = <T extends z.ZodType>(data: T) =>
  z.object({ success: z.literal(true), message: z.string().describe("For a person."), data });

/** A value of the user's own data; see metadata.ts for the limits. */
const MetadataValue: z.ZodType = z
  .lazy(() =>
    z.union([
      z.string(),
      z.number(),
      z.boolean(),
      z.null(),
      z.array(z.union([z.string(), z.number(), z.boolean(), z.null()])),
      z.record(z.string(), MetadataValue),
    ]),
  )
  .meta({ id: "MetadataValue" });

/** The service's own words on a resource beside the user's data, whose keys are other ones. */
export const ResourceMetadata = z
  .object({
    status: z
      .enum(["chunked", "queued", "error"])
      .describe("chunked: the text is searchable. queued: it will be. error: it could not be taken in."),
    error: z.string().optional().describe("The code of the failure, where status is error."),
    message: z.string().optional().describe("Why status is error, and what can be done about it."),
    strategyUsed: Strategy.optional().describe(
      "How the text was split, where another strategy than recursive was asked for.",
    ),
    warning: z.string().optional().describe("What of the document the text does not hold, and why."),
  })
  .catchall(MetadataValue)
  .meta({ id: "ResourceMetadata", description: "The user's own data, and beside it what the service says." });
export type ResourceMetadata = z.infer<typeof ResourceMetadata>;

/** Chunking settings of a resource. */
const ResourceSettings = z
  .object({
    strategy: Strategy,
    chunkSize: z.int().min(CHUNK_CHARS_MIN).max(CHUNK_CHARS_MAX),
    chunkOverlap: z.int().min(0),
  })
  .meta({ id: "ResourceSettings" });

const facts = {
  _id: Id,
  title: z.string(),
  description: z.string(),
  collectionId: Id,
  ownerId: z.string(),
  url: z.string().optional().describe("Of file and link resources only."),
  refreshedAt: Time.nullable().describe("Null until the first update."),
  isDeleted: z.literal(false),
  settings: ResourceSettings,
  createdAt: Time,
  updatedAt: Time,
};

/** A resource in the answer to a create. */
export const CreatedResource = z
  .object({ ...facts, metadata: ResourceMetadata.optional().describe("There where it has a warning.") })
  .meta({ id: "CreatedResource" });
export type CreatedResource = z.infer<typeof CreatedResource>;

/** A resource in the answer that comes before the work. */
export const QueuedResource = z
  .object({ ...facts, metadata: ResourceMetadata })
  .meta({ id: "QueuedResource" });
export type QueuedResource = z.infer<typeof QueuedResource>;

const whole = { ...facts, content: z.string(), metadata: ResourceMetadata };

/** A resource with its text. */
export const LiveResource = z.object(whole).meta({ id: "Resource" });
export type LiveResource = z.infer<typeof LiveResource>;

/** A deleted resource in the account's books. */
export const DeletedResource = z
  .object({ ...whole, isDeleted: z.literal(true), deletedAt: Time })
  .meta({ id: "DeletedResource" });
export type DeletedResource = z.infer<typeof DeletedResource>;

const AnyResource = z.discriminatedUnion("isDeleted", [LiveResource, DeletedResource]);

export const CreateAnswer = answerOf(CreatedResource).meta({ id: "CreateAnswer" });
export const QueuedAnswer = answerOf(QueuedResource).meta({ id: "QueuedAnswer" });
export const UpdateAnswer = answerOf(LiveResource).meta({ id: "UpdateAnswer" });
export const DeleteAnswer = answerOf(DeletedResource).meta({ id: "DeleteAnswer" });
export const ReadAnswer = answerOf(AnyResource).meta({ id: "ReadAnswer" });

export const ResourcesAnswer = answerOf(
  z.object({
    resources: z.array(AnyResource).describe("Oldest first."),
    created: z.literal(0),
    nextCursor: z
      .string()
      .nullable()
      .optional()
      .describe("With limit or cursor only; null on the last page."),
  }),
).meta({ id: "ResourcesAnswer" });

/** A chunk. Offsets are UTF-16 units into the resource's content, end exclusive. */
const ResourceChunk = z
  .object({
    id: z.uuid(),
    start: Count,
    end: Count,
    headings: z.array(z.string()).describe("Above the chunk, outermost first."),
    content: z.string().describe("before, the text from start to end, and after."),
    before: z.string().optional(),
    after: z.string().optional(),
  })
  .meta({ id: "Chunk" });

export const ChunksAnswer = answerOf(
  z.object({ resourceId: Id, version: z.int().min(1), chunks: z.array(ResourceChunk) }),
).meta({ id: "ChunksAnswer" });
export type ChunksAnswer = z.infer<typeof ChunksAnswer>;

export const OwnersPageAnswer = answerOf(
  z.object({ owners: z.array(OwnerEntry), nextCursor: z.string().nullable() }),
).meta({ id: "OwnersAnswer" });

export const AllCollectionsAnswer = answerOf(
  z.object({
    collections: z.array(
      z.object({ _id: Id, details: Tier, resources: Count, chunks: Count }).meta({ id: "Collection" }),
    ),
    reads: z
      .array(z.string())
      .describe("Media types of uploads that are read, beside PDFs, images and text to the letter."),
  }),
).meta({ id: "CollectionsAnswer" });

/** A chunk that a search found. */
export const FoundResult = z
  .object({
    id: z.uuid().describe("Of the chunk."),
    version: z.int().min(1).describe("How often the resource was chunked."),
    score: z.number().min(0).max(1),
    payload: z.object({
      resourceId: Id,
      collectionId: Id,
      content: z.string(),
      ownerId: z.string(),
      title: z.string().describe("Of the resource."),
      headings: z.array(z.string()).describe("Above the chunk, outermost first."),
      path: z.string().describe("Title and headings in one line."),
      before: z.string().optional().describe("What content begins with though it stands elsewhere."),
      after: z.string().optional().describe("What content ends with though it stands elsewhere."),
    }),
  })
  .meta({ id: "SearchResult" });
export type FoundResult = z.infer<typeof FoundResult>;

export const FoundAnswer = z
  .object({
    success: z.literal(true),
    text: z.string().describe("The results' contents, joined by a blank line."),
    results: z.array(FoundResult).describe("By descending score, ties by id."),
  })
  .meta({ id: "SearchAnswer" });

/** Body of every refused request. */
export const Refused = z
  .object({
    success: z.literal(false),
    message: z.string().describe("For a person."),
    error: z.object({
      code: z
        .string()
        .regex(/^[a-z]+(_[a-z]+)*$/)
        .describe("For programs; docs/API.md lists the codes."),
      hint: z.string().optional().describe("What to do."),
      field: z.string().optional().describe("JSON path, query parameter or form part at fault."),
    }),
  })
  .meta({ id: "Failure" });
