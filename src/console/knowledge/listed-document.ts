import type { ResourceRecord } from "../../wire/resource.ts";

/** A document as lists show it. */
export interface ListedDocument {
  readonly id: string;
  readonly title: string;
  readonly description: string;
  readonly status: Status;
  /** Why it failed. */
  readonly message: string | undefined;
  readonly warning: string | undefined;
  readonly kind: "content" | "file" | "link";
  readonly url: string | undefined;
  /** Path in a folder that kbsync watches; undefined for documents from elsewhere. */
  readonly path: string | undefined;
  readonly updatedMs: number;
  readonly settings: ResourceRecord["settings"];
  /** Everything that the filter searches, in small letters. */
  readonly words: string;
}

export type Status = "searchable" | "waiting" | "failed";

/** Words of a status, and the kind of its sign. */
export const STATUS_WORDS = {
  searchable: { label: "Searchable", kind: "good" },
  waiting: { label: "Waiting", kind: "wait" },
  failed: { label: "Failed", kind: "bad" },
} as const;

/** Converts a record of the API. */
export function listed(record: ResourceRecord): ListedDocument {
  const { _id: id, title, description, metadata, url, updatedAt = "", settings } = record;
  const path = typeof metadata?.["path"] === "string" ? metadata["path"] : undefined;
  return {
    id,
    title,
    description,
    status:
      metadata?.status === "error" ? "failed" : metadata?.status === "queued" ? "waiting" : "searchable",
    message: metadata?.message,
    warning: metadata?.warning,
    kind: url === undefined || url === null ? "content" : isUpload(url) ? "file" : "link",
    url: url ?? undefined,
    path,
    updatedMs: Date.parse(updatedAt),
    settings,
    words: [title, description, url ?? "", JSON.stringify(metadata ?? {})].join("\n").toLowerCase(),
  };
}

/** Whether an address is one of the service's uploaded files, and not a page elsewhere. */
function isUpload(url: string): boolean {
  return /\/files\/[A-Za-z0-9_-]{16,}\//.test(url);
}
