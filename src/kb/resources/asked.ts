import type { ThreadLink, Expected, Resource } from "../store/records.ts";
import type { RequestNote } from "../store/request-note.ts";
import { Refusal } from "./refusal.ts";

/** How a change was asked for. */
export interface Asked {
  /** Set where the request may be repeated under its `Idempotency-Key`. */
  readonly request?: Pick<RequestNote, "key" | "bodySha256">;
  /** What the resource must be for the change to be made. */
  readonly precondition?: Precondition;
  /** Notified of what is to be changed before it is, and throws where an answer of this length has no room. */
  readonly makeRoom?: (before: Resource) => void;
  /** The thread that an uploaded file belongs to. */
  readonly thread?: ThreadLink;
}

/** True of a resource in the state a caller expects. */
export type Precondition = (resource: Pick<Resource, "id" | "revision">) => boolean;

/** The note of a request, for the write that does what it asks for. */
export function noteOf(asked: Asked, status: number, nowMs: number): { readonly request?: RequestNote } {
  return asked.request === undefined ? {} : { request: { ...asked.request, status, nowMs } };
}

/**
 * Throws `precondition_failed` where the resource is not what the caller expects. Answers what the write is to be told,
 * which asks again: between this look and the write another change may be written.
 */
export function refuseUnexpected(asked: Asked, resource: Pick<Resource, "id" | "revision">): Expected {
  if (asked.precondition === undefined) return {};
  if (asked.precondition(resource)) return { expectedRevision: resource.revision };
  throw new Refusal("precondition_failed", "The resource has changed: If-Match names another state of it.", {
    hint: "Read it again, and repeat the change with the ETag of that answer.",
  });
}
