import { z } from "zod";
import { DESCRIPTION_CHARS_MAX, OWNER_CHARS_MAX, TITLE_CHARS_MAX, URL_CHARS_MAX } from "./constants.ts";
import {
  CHUNK_CHARS_DEFAULT,
  CHUNK_CHARS_MAX,
  CHUNK_CHARS_MIN,
  completeSettings,
  OVERLAP_CHARS_DEFAULT,
  Strategy,
  Tier,
  WireInteger,
} from "./primitives.ts";
import { LocationStarts } from "./location.ts";
import { readMetadata } from "./metadata.ts";

const chunkSize = WireInteger.pipe(z.int().min(CHUNK_CHARS_MIN).max(CHUNK_CHARS_MAX));
const chunkOverlap = WireInteger.pipe(z.int().min(0));

/** Chunking settings of a new resource. Every field is optional. */
const SettingsBody = z
  .object({
    strategy: Strategy.default("recursive"),
    chunkSize: chunkSize.default(CHUNK_CHARS_DEFAULT),
    chunkOverlap: chunkOverlap
      .optional()
      .describe(`Default: ${OVERLAP_CHARS_DEFAULT}, or a tenth of a small chunkSize.`),
  })
  .transform(completeSettings)
  .refine((settings) => settings.chunkOverlap < settings.chunkSize, {
    message: "expected an integer below chunkSize",
    path: ["chunkOverlap"],
  });

/** Stored unchanged. Only a blank title is refused. */
const title = z
  .string()
  .min(1)
  .max(TITLE_CHARS_MAX)
  .refine((text) => text.trim() !== "", { message: "expected a text that is not blank" });
const description = z.string().max(DESCRIPTION_CHARS_MAX);
const url = z.string().min(1).max(URL_CHARS_MAX);
const content = z.string();
const locations = LocationStarts.describe(
  "Where the source file has the parts of content, which is sent too.",
);

/** User metadata of a resource, for filters (an addition). */
const metadata = z.unknown().transform(readMetadata).meta({
  type: "object",
  description: "User metadata: strings, numbers, booleans, nulls, lists of those, and such objects.",
});

/** Body of `POST /api/rag/resource`. Exactly one of `url` and `content`. */
export const CreateBody = z
  .object({
    title,
    description,
    settings: SettingsBody.optional().describe("Default: those of its fields."),
    url: url.optional(),
    content: content.optional(),
    locations: locations.optional(),
    collection_details: Tier,
    owner_id: z.string().min(1).max(OWNER_CHARS_MAX).optional().describe("Default: the account's own id."),
    metadata: metadata.optional(),
  })
  .meta({ id: "CreateBody" });
export type CreateBody = z.infer<typeof CreateBody>;

/** Chunking settings to change; absent fields stay unchanged. The overlap is checked against the resulting settings. */
export const SettingsChange = z.object({
  strategy: Strategy.optional(),
  chunkSize: chunkSize.optional(),
  chunkOverlap: chunkOverlap.optional(),
});
export type SettingsChange = z.infer<typeof SettingsChange>;

/** Body of `PUT /api/rag/resource/<doc_id>`: any subset. `settings` is an addition and chunks again. */
export const UpdateBody = z
  .object({
    title: title.optional(),
    description: description.optional(),
    url: url.optional(),
    content: content.optional(),
    locations: locations.optional(),
    settings: SettingsChange.optional(),
    metadata: metadata.optional(),
  })
  .meta({ id: "UpdateBody" });
export type UpdateBody = z.infer<typeof UpdateBody>;

/** Query of `DELETE /api/rag/resource/<doc_id>`. `purge` is an addition: the text is removed for good, also of a deleted resource. */
export const DeleteQuery = z.object({ purge: z.enum(["true", "false"]).optional() });

/**
 * A resource in the answer of any service. Other services omit fields: only `_id` is required. Times are ISO 8601 UTC. The
 * create answer has no `content`, and `metadata` only for a warning.
 */
export const ResourceRecord = z.object({
  _id: z.string().min(1),
  title: z.string().default(""),
  description: z.string().default(""),
  collectionId: z.string().optional(),
  ownerId: z.string().optional(),
  url: z.string().nullish(),
  content: z.string().nullish(),
  refreshedAt: z.string().nullish(),
  /** Absent: the service does not say. */
  isDeleted: z.boolean().optional(),
  settings: z
    .object({
      strategy: z.string().optional(),
      chunkSize: z.number().optional(),
      chunkOverlap: z.number().optional(),
    })
    .nullish(),
  createdAt: z.string().optional(),
  updatedAt: z.string().optional(),
  metadata: z
    .looseObject({
      status: z.string().optional(),
      message: z.string().optional(),
      warning: z.string().optional().catch(undefined), // user metadata, at a service without this key
    })
    .nullish(),
});
export type ResourceRecord = z.infer<typeof ResourceRecord>;

/** Answer of create, update, delete and get. */
export const ResourceAnswer = z.object({
  success: z.literal(true),
  message: z.string().default(""),
  data: ResourceRecord,
});
export type ResourceAnswer = z.infer<typeof ResourceAnswer>;

/** `false` leaves `content` empty: for clients that list what exists, or need only the record. */
const withContent = z.enum(["true", "false"]).optional();

/** Refuses an answer about another version of the text. */
const version = WireInteger.pipe(z.int().min(0)).optional();

/** Query string of `GET /api/rag/resource/<doc_id>` (an addition). */
export const ReadQuery = z.object({ content: withContent, version });

/** Query string of `GET /api/rag/resource/<doc_id>/chunks` (an addition). */
export const ChunksQuery = z.object({ version });

/** Query string of `GET /api/rag/resource/by-collection`. `limit`, `cursor`, `deleted` and `content` are additions. */
export const ListQuery = z.object({
  collectionId: z.string().min(1),
  ownerId: z.string().min(1),
  limit: WireInteger.pipe(z.int().min(1).max(1000)).optional(),
  cursor: z.string().max(200).optional(),
  /** `true` lists deleted resources instead of the others. */
  deleted: z.enum(["true", "false"]).optional(),
  content: withContent,
});
export type ListQuery = z.infer<typeof ListQuery>;

/** Answer of the list. `created` is always 0; `nextCursor` is present only with pagination, null on the last page. */
export const ListAnswer = z.object({
  success: z.literal(true),
  message: z.string().default(""),
  data: z.object({
    resources: z.array(ResourceRecord),
    created: z.number().default(0),
    nextCursor: z.string().nullish(),
  }),
});
export type ListAnswer = z.infer<typeof ListAnswer>;

/** Answer of `GET /api/rag/collections` (an addition): the three collections of the key's account. */
export const CollectionsAnswer = z.object({
  success: z.literal(true),
  data: z.object({
    collections: z.array(
      z.object({ _id: z.string(), details: Tier, resources: z.number(), chunks: z.number() }),
    ),
    reads: z.array(z.string()).optional(),
    locations: z.boolean().optional(),
    /** Whether resources take user metadata. */
    metadata: z.boolean().optional(),
    /** Whether a delete with `purge=true` removes texts for good. */
    purges: z.boolean().optional(),
  }),
});
export type CollectionsAnswer = z.infer<typeof CollectionsAnswer>;
