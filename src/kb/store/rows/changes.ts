import { hash } from "node:crypto";
import type { UserMetadata } from "../../../wire/metadata.ts";
import type { ChangeKind, DocumentChange } from "../changes.ts";
import type { ResourceRow } from "./records.ts";

/** The cursor before the first change of an account. */
export const BEFORE_ALL = "0";

/** A row of `document_change`. */
export interface ChangeRow {
  readonly account_id: string;
  readonly ordinal: number;
  readonly kind: ChangeKind;
  readonly resource_id: string;
  readonly collection_id: string;
  readonly owner_id: string;
  readonly at: string;
  readonly version: number;
  readonly revision: number;
  readonly status: DocumentChange["status"];
  readonly sha256: Buffer | null;
  readonly path: string | null;
}

/** A change before it has its place in the feed. */
export type NewChange = Omit<ChangeRow, "ordinal">;

/** Returns the row of a change without its ordinal. The document has this row after the change; a deleted one, before it. */
export function newChange(kind: ChangeKind, row: ResourceRow, nowIso: string): NewChange {
  const isDeleted = kind === "deleted";
  const { path } = JSON.parse(row.metadata) as UserMetadata; // written by this store from such an object
  return {
    account_id: row.account_id,
    kind,
    resource_id: row.id,
    collection_id: row.collection_id,
    owner_id: row.owner_id,
    at: nowIso,
    version: row.version,
    revision: isDeleted ? row.revision + 1 : row.revision,
    status: isDeleted ? "deleted" : row.status,
    sha256: isDeleted ? null : row.sha256,
    path: typeof path === "string" ? path : null,
  };
}

/** Converts a row to a change. */
export function changeOf(row: ChangeRow): DocumentChange {
  return {
    cursor: cursorOf(row),
    kind: row.kind,
    resourceId: row.resource_id,
    collectionId: row.collection_id,
    ownerId: row.owner_id,
    at: row.at,
    version: row.version,
    revision: row.revision,
    status: row.status,
    sha256: row.sha256?.toString("hex") ?? null,
    path: row.path,
  };
}

/** The hash distinguishes the change from another one with its ordinal, which a store has after a restore of a backup. */
export function cursorOf({ ordinal, kind, resource_id: id, at, revision }: ChangeRow): string {
  return `${ordinal}-${hash("sha256", `${kind} ${id} ${at} ${revision}`, "hex").slice(0, 12)}`;
}
