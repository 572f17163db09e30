import type {
  CreatedResource,
  DeletedResource,
  LiveResource,
  QueuedResource,
  ResourceMetadata,
} from "../../wire/answers.ts";
import type { Resource } from "../store/resources.ts";

/** Returns the record in the answer to a create. */
export function createdRecord(resource: Resource): CreatedResource {
  const { strategy, chunkSize, chunkOverlap } = resource.settings;
  return {
    _id: resource.id,
    title: resource.title,
    description: resource.description,
    collectionId: resource.collectionId,
    ownerId: resource.ownerId,
    ...(resource.url === null ? {} : { url: resource.url }),
    refreshedAt: resource.refreshedAt,
    isDeleted: false,
    settings: { strategy, chunkSize, chunkOverlap },
    createdAt: resource.createdAt,
    updatedAt: resource.updatedAt,
    // A warning belongs in the first answer: clients do not check later whether the whole document was read.
    ...(resource.warning === null ? {} : { metadata: metadataOf(resource) }),
  };
}

/** Returns the record of a resource with its text, live or deleted. */
export function wholeRecord(resource: Resource): LiveResource | DeletedResource {
  return resource.isDeleted ? deletedRecord(resource) : liveRecord(resource);
}

/** Returns the record of a live resource with its text. */
export function liveRecord(resource: Resource): LiveResource {
  return {
    ...createdRecord(resource),
    content: resource.content,
    metadata: metadataOf(resource),
  };
}

/** Returns the record of a deleted resource. The delete was its last change. */
export function deletedRecord(resource: Resource): DeletedResource {
  return { ...liveRecord(resource), isDeleted: true, deletedAt: resource.updatedAt };
}

/** Returns the record in the answer to a queued create or update. */
export function queuedRecord(resource: Resource): QueuedResource {
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
}: Resource): ResourceMetadata {
  // `recursive` is always available, so there is no other strategy to report.
  const reportsStrategy = settings.strategy !== "recursive" && strategyUsed !== null;
  return {
    ...metadata,
    status,
    ...(reportsStrategy ? { strategyUsed } : {}),
    ...(warning === null ? {} : { warning }),
    ...(statusError === null ? {} : { error: statusError }),
    ...(statusMessage === null ? {} : { message: statusMessage }),
  };
}
