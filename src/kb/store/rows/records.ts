import type { UserMetadata } from "../../../wire/metadata.ts";
import type { Settings, Strategy, Tier } from "../../../wire/primitives.ts";
import type { Origin, Resource, ResourceStatus } from "../resources.ts";

// Rows of the tables of either store, and their conversion to records of the port.

/** A row of RESOURCE_COLUMNS. */
export interface ResourceRow {
  readonly number: number;
  readonly id: string;
  readonly account_id: string;
  readonly scope: number;
  readonly collection_id: string;
  readonly tier: Tier;
  readonly owner_id: string;
  readonly origin: Origin;
  readonly title: string;
  readonly description: string;
  readonly url: string | null;
  readonly head: string;
  readonly settings: string;
  readonly created_at: string;
  readonly refreshed_at: string | null;
  readonly updated_at: string;
  /** SQLite has no booleans. */
  readonly is_deleted: number | boolean;
  readonly version: number;
  readonly first_row: number;
  readonly chunks: number;
  readonly revision: number;
  readonly status: ResourceStatus;
  readonly status_message: string | null;
  readonly status_error: string | null;
  readonly metadata: string;
  readonly file_metadata: string;
  readonly file_token: string | null;
  readonly strategy_used: Strategy | null;
  readonly warning: string | null;
  readonly sha256: Buffer | null;
  readonly locations: string | null;
  readonly label: string;
}

/** Selects resources with columns of their scope and collection; the caller appends a WHERE clause. */
export const SELECT_RESOURCE = `
  SELECT resource.number, resource.id, resource.account_id, resource.scope, scope.collection_id, collection.tier,
    scope.owner_id, origin, title, description, url, head, settings, created_at, refreshed_at, updated_at, is_deleted,
    version, first_row, resource.chunks, revision, status, status_message, status_error, resource.metadata,
    file_metadata, file_token, strategy_used, warning, sha256, locations, label
  FROM resource JOIN scope ON scope.number = resource.scope JOIN collection ON collection.id = scope.collection_id`;

/** Converts a row to a resource with the given content. */
export function resourceOf(row: ResourceRow, content: string): Resource {
  const settings = settingsOf(row);
  return {
    id: row.id,
    accountId: row.account_id,
    collectionId: row.collection_id,
    tier: row.tier,
    ownerId: row.owner_id,
    origin: row.origin,
    title: row.title,
    description: row.description,
    url: row.url,
    content,
    settings,
    createdAt: row.created_at,
    refreshedAt: row.refreshed_at,
    updatedAt: row.updated_at,
    isDeleted: row.is_deleted === 1 || row.is_deleted === true,
    version: row.version,
    chunkCount: row.chunks,
    revision: row.revision,
    status: row.status,
    statusMessage: row.status === "error" ? row.status_message : null,
    statusError: row.status === "error" ? row.status_error : null,
    strategyUsed: row.version === 0 ? null : (row.strategy_used ?? settings.strategy),
    warning: row.warning,
    metadata: metadataOf(row),
  };
}

/** Returns the metadata of a resource: that of its file, overridden by its own. */
export function metadataOf(row: Pick<ResourceRow, "metadata" | "file_metadata">): UserMetadata {
  // Both were written by this store from such objects.
  return {
    ...(JSON.parse(row.file_metadata) as UserMetadata),
    ...(JSON.parse(row.metadata) as UserMetadata),
  };
}

/** Reads the settings of a row. */
export function settingsOf({ settings }: Pick<ResourceRow, "settings">): Settings {
  return JSON.parse(settings) as Settings; // written by this store from a Settings
}
