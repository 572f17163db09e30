import type { DocumentEntry } from "../../wire/documents.ts";
import type { ResourceRecord } from "../../wire/resource.ts";

/** A document as lists show it. */
export interface ListedDocument {
  readonly id: string;
  readonly title: string;
  /** Where it comes from, in words: its path, its address, or its description. Empty if the title says so already. */
  readonly origin: string;
  readonly status: Status;
  /** Why it failed. */
  readonly message: string | undefined;
  readonly warning: string | undefined;
  /** Path in a folder that kbsync watches; undefined for documents from elsewhere. */
  readonly path: string | undefined;
  readonly updatedMs: number;
}

export type Status = "searchable" | "waiting" | "failed";

/** Words of a status, and the kind of its sign. */
export const STATUS_WORDS = {
  searchable: { label: "Searchable", kind: "good" },
  waiting: { label: "Waiting", kind: "wait" },
  failed: { label: "Failed", kind: "bad" },
} as const;

/** The statuses as the API names them. */
export const WIRE_STATUS = { searchable: "chunked", waiting: "queued", failed: "error" } as const;

/** Converts an entry of a list. */
export function listed(entry: DocumentEntry): ListedDocument {
  const { _id: id, title, description, url, path, message, warning, updatedAt } = entry;
  const origin = path ?? (url === null || isUpload(url) ? description : url);
  return {
    id,
    title,
    origin: origin === title ? "" : origin,
    status: statusOf(entry.status),
    message: message ?? undefined,
    warning: warning ?? undefined,
    path: path ?? undefined,
    updatedMs: Date.parse(updatedAt),
  };
}

/** Returns what a record says about its state. */
export function stateOf({
  metadata,
}: Pick<ResourceRecord, "metadata">): Pick<ListedDocument, "path" | "status" | "message" | "warning"> {
  return {
    path: typeof metadata?.["path"] === "string" ? metadata["path"] : undefined,
    status: statusOf(metadata?.status),
    message: metadata?.message,
    warning: metadata?.warning,
  };
}

function statusOf(status: string | undefined): Status {
  return status === "error" ? "failed" : status === "queued" ? "waiting" : "searchable";
}

/** The name of an uploaded file from its address; undefined for an address elsewhere. */
export function uploadName(url: string): string | undefined {
  return isUpload(url) ? decodeURIComponent(url.slice(url.lastIndexOf("/") + 1)) : undefined;
}

/** Whether an address is one of the service's uploaded files, and not a page elsewhere. */
function isUpload(url: string): boolean {
  return /\/files\/[A-Za-z0-9_-]{16,}\//.test(url);
}
