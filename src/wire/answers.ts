import { z } from "zod";
import {
  CHUNK_CHARS_MAX,
  CHUNK_CHARS_MIN,
  Count,
  Id,
  NumberRange,
  Strategy,
  Tier,
  Time,
} from "./primitives.ts";
import { PassageFields } from "./context.ts";
import { Location } from "./location.ts";
import { OwnerEntry } from "./owners.ts";
import { Pending, SearchFallback } from "./search.ts";

/**
 * The answers that this service promises for resources and searches: fields that are always present are required, all
 * others are listed. Clients also talk to other services and parse with the lenient schemas of resource.ts and search.ts.
 */

/** An answer in the specification's form. */
export const answerOf = <T extends z.ZodType>(data: T) =>
  z.object({ success: z.literal(true), message: z.string().describe("For a person."), data });

/** A value of user metadata; see metadata.ts for the limits. */
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

/** Metadata of a resource: the service's keys and, under other keys, those of the user. */
export const ResourceMetadata = z
  .object({
    status: z
      .enum(["chunked", "queued", "error"])
      .describe("chunked: the text is searchable. queued: it will be. error: ingestion failed."),
    error: z.string().optional().describe("Error code, if status is error."),
    message: z.string().optional().describe("Why ingestion failed and what to do, if status is error."),
    strategyUsed: Strategy.optional().describe(
      "The strategy that split the text, if one other than recursive was requested.",
    ),
    warning: z.string().optional().describe("Parts of the document that the text lacks, and why."),
  })
  .catchall(MetadataValue)
  .meta({ id: "ResourceMetadata", description: "User metadata, and the keys of the service." });
export type ResourceMetadata = z.infer<typeof ResourceMetadata>;

/** Complete chunking settings of a resource. */
export const ResourceSettings = z
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
  .object({ ...facts, metadata: ResourceMetadata.optional().describe("Present if there is a warning.") })
  .meta({ id: "CreatedResource" });
export type CreatedResource = z.infer<typeof CreatedResource>;

/** A resource in an answer that precedes its ingestion. */
export const QueuedResource = z
  .object({ ...facts, metadata: ResourceMetadata })
  .meta({ id: "QueuedResource" });
export type QueuedResource = z.infer<typeof QueuedResource>;

const whole = { ...facts, content: z.string(), metadata: ResourceMetadata };

/** A resource with its text. */
export const LiveResource = z.object(whole).meta({ id: "Resource" });
export type LiveResource = z.infer<typeof LiveResource>;

/** The record of a deleted resource. */
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

/** The position of a chunk in its resource's content. */
const position = {
  start: Count.describe("UTF-16 offset into the resource's content of the text after before."),
  end: Count.describe("UTF-16 offset of the end of that text, exclusive."),
  lines: NumberRange.optional().describe("Absent for texts from before lines were stored."),
  pages: NumberRange.optional().describe("Of PDFs, and of images with several pages."),
  locations: z
    .array(Location)
    .optional()
    .describe("Where the source file has that text, in order. Absent if that is unknown."),
};

/** The version of a text that a position refers to. */
const text = {
  sha256: z
    .string()
    .regex(/^[0-9a-f]{64}$/)
    .optional()
    .describe(
      "Of the resource's content in this version, as UTF-8. Absent for texts from before it was stored.",
    ),
  fileUrl: z.string().optional().describe("The url of a file or link resource."),
  filePath: z
    .string()
    .optional()
    .describe("The string `path` of the resource's metadata: the file in its synced folder."),
  folderDescription: z
    .string()
    .optional()
    .describe("The string of that name in the resource's metadata: context for its text."),
};

/** A chunk. */
const ResourceChunk = z
  .object({
    id: z.uuid(),
    ...position,
    headings: z.array(z.string()).describe("Above the chunk, outermost first."),
    path: z.string().describe("Title and headings in one line."),
    content: z.string().describe("before, the text from start to end, and after."),
    before: z.string().optional(),
    after: z.string().optional(),
  })
  .meta({ id: "Chunk" });

export const ChunksAnswer = answerOf(
  z.object({
    resourceId: Id,
    version: z
      .int()
      .min(0)
      .describe("How often the resource was chunked; 0 while it is queued for the first time."),
    title: z.string().describe("Of the resource."),
    ...text,
    chunks: z.array(ResourceChunk),
  }),
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
      .describe("Media types of uploads that are read, in addition to PDFs, images and plain text."),
    locations: z.literal(true).describe("locations are taken with content."),
    metadata: z.literal(true).describe("User metadata is stored and found by filters."),
    purges: z.literal(true).describe("A delete with purge=true removes the text for good."),
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
      ...position,
      ...text,
      before: z
        .string()
        .optional()
        .describe("Beginning of content that comes from another part of the text."),
      after: z.string().optional().describe("End of content that comes from another part of the text."),
      ...PassageFields,
    }),
  })
  .meta({ id: "SearchResult" });
export type FoundResult = z.infer<typeof FoundResult>;

export const FoundAnswer = z
  .object({
    success: z.literal(true),
    text: z.string().describe("The results' contents, joined by a blank line."),
    results: z.array(FoundResult).describe("By descending score, ties by id."),
    fallback: SearchFallback.optional(),
    pending: Pending,
  })
  .meta({ id: "SearchAnswer" });

/** Body of every error response. */
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
