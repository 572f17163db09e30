import type { Settings, Strategy } from "../../wire/primitives.ts";
import type { Resource } from "../store/store.ts";

/** A resource as create answers it: without `content`, and without `metadata` unless there is a warning. `url` is present on link and file resources. */
export interface CreatedRecord {
  readonly _id: string;
  readonly title: string;
  readonly description: string;
  readonly collectionId: string;
  readonly ownerId: string;
  readonly url?: string;
  readonly refreshedAt: string | null;
  readonly isDeleted: boolean;
  readonly settings: Settings;
  readonly createdAt: string;
  readonly updatedAt: string;
  readonly metadata?: RecordMetadata;
}

/** A resource as update, delete, list and get answer it. */
export interface FullRecord extends CreatedRecord {
  readonly content: string;
  readonly metadata: RecordMetadata;
}

/** The service's own words on a resource beside the user's data, whose keys are other ones. */
export interface RecordMetadata {
  readonly status: string;
  /** The code of the failure, where the status is `error`. */
  readonly error?: string;
  /** Why, where the status is `error`, and what can be done about it. */
  readonly message?: string;
  /** How the text was split, where another strategy than `recursive` was asked for. */
  readonly strategyUsed?: Strategy;
  /** What of the document the text does not hold, and why. */
  readonly warning?: string;
  readonly [key: string]: unknown;
}

/** A resource whose text is not there yet, or is not asked for. */
export interface QueuedRecord extends CreatedRecord {
  readonly metadata: RecordMetadata;
}

/** A deleted resource in the account's books. */
export interface DeletedRecord extends FullRecord {
  readonly deletedAt: string;
}

/** The record of the create answer. */
export function createdRecord(resource: Resource): CreatedRecord {
  const { strategy, chunkSize, chunkOverlap } = resource.settings;
  return {
    _id: resource.id,
    title: resource.title,
    description: resource.description,
    collectionId: resource.collectionId,
    ownerId: resource.ownerId,
    ...(resource.url === null ? {} : { url: resource.url }),
    refreshedAt: resource.refreshedAt,
    isDeleted: resource.isDeleted,
    settings: { strategy, chunkSize, chunkOverlap },
    createdAt: resource.createdAt,
    updatedAt: resource.updatedAt,
    // Nobody would ask a second time whether all of a document was read.
    ...(resource.warning === null ? {} : { metadata: metadataOf(resource) }),
  };
}

/** The record of every other answer. */
export function fullRecord(resource: Resource): FullRecord {
  return {
    ...createdRecord(resource),
    content: resource.content,
    metadata: metadataOf(resource),
  };
}

/** The record of a deleted resource: its delete was its last change. */
export function deletedRecord(resource: Resource): DeletedRecord {
  return { ...fullRecord(resource), deletedAt: resource.updatedAt };
}

/** The record of the answer that comes before the work. */
export function queuedRecord(resource: Resource): QueuedRecord {
  return { ...createdRecord(resource), metadata: metadataOf(resource) };
}

function metadataOf({
  metadata,
  status,
  statusMessage,
  statusError,
  strategyUsed,
  warning,
  settings,
}: Resource): RecordMetadata {
  // `recursive` is always had: there is nothing to tell.
  const isTold = settings.strategy !== "recursive" && strategyUsed !== null;
  return {
    ...metadata,
    status,
    ...(isTold ? { strategyUsed } : {}),
    ...(warning === null ? {} : { warning }),
    ...(statusError === null ? {} : { error: statusError }),
    ...(statusMessage === null ? {} : { message: statusMessage }),
  };
}
