import type { Settings } from "../../wire/primitives.ts";
import type { Resource } from "../store/store.ts";

/** A resource as create answers it: without `content` and `metadata`. `url` is present on link and file resources. */
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
}

/** A resource as update, delete, list and get answer it. */
export interface FullRecord extends CreatedRecord {
  readonly content: string;
  readonly metadata: { readonly status: string };
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
  };
}

/** The record of every other answer. */
export function fullRecord(resource: Resource): FullRecord {
  return {
    ...createdRecord(resource),
    content: resource.content,
    metadata: { status: resource.status },
  };
}
