import type { CreateBody, UpdateBody } from "../../wire/resource.ts";
import type { Expected, Resource, ResourceKey } from "../store/resources.ts";
import type { ThreadLink } from "../store/thread-link.ts";
import type { RequestNote } from "../store/request-note.ts";
import { Refusal } from "./refusal.ts";

/** The parts of a request besides the change itself. */
export interface RequestContext {
  /** Set if the request may be repeated under its `Idempotency-Key`. */
  readonly request?: Pick<RequestNote, "key" | "bodySha256">;
  /** The state that the resource must have. */
  readonly precondition?: Precondition;
  /** Called with the resource before it changes. Throws if memory for a response of its size is not available. */
  readonly makeRoom?: (before: Resource) => void;
  /** The thread that an uploaded file belongs to. */
  readonly thread?: ThreadLink;
}

/** A create as a client requests it. */
export interface CreateRequest {
  readonly accountId: string;
  readonly body: CreateBody;
  readonly context: RequestContext;
}

/** An update as a client requests it. */
export interface UpdateRequest extends ResourceKey {
  readonly body: UpdateBody;
  readonly context: RequestContext;
}

/** Reports whether a resource is in the state that the caller expects. */
export type Precondition = (resource: Pick<Resource, "id" | "revision">) => boolean;

/** Returns the note of a request, for the transaction of the write that the request asks for. */
export function noteOf(
  context: RequestContext,
  status: number,
  nowMs: number,
): { readonly request?: RequestNote } {
  return context.request === undefined ? {} : { request: { ...context.request, status, nowMs } };
}

/**
 * Throws `precondition_failed` if the resource is not in the expected state. Returns the condition for the write, which
 * checks again: another change may be written between this check and the write.
 */
export function refuseUnexpected(
  context: RequestContext,
  resource: Pick<Resource, "id" | "revision">,
): Expected {
  if (context.precondition === undefined) return {};
  if (context.precondition(resource)) return { expectedRevision: resource.revision };
  throw new Refusal("precondition_failed", "The resource has changed: If-Match names another state of it.", {
    hint: "Read it again, and repeat the change with the ETag of that answer.",
  });
}
