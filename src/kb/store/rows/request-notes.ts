import { KbsyncError } from "../../../lib/failure.ts";
import type { Resource } from "../resources.ts";

/** Lifetime of the answer to an idempotency key. */
export const ANSWER_TTL_MS = 24 * 60 * 60 * 1000;
/** Maximum notes of an account; the oldest are evicted first. About 100 MB at the worst usual size; an initial load makes one a file. */
export const NOTES_MAX = 100_000;
/** Expired notes removed with each write: more than it adds. */
export const REMOVED_MAX = 4;
/**
 * Longest record stored whole, in characters of JSON: enough for creates and short updates. With the bound on their number,
 * all notes of an account stay below a gigabyte; whole records of 32 MB would fill any disk within the 24 hours.
 */
const RECORD_CHARS_MAX = 8 * 1024;

/** The failure of a write whose key is noted already: another process carried out a request with it. */
export function notedBefore(key: string): KbsyncError {
  return new KbsyncError("a request with this idempotency key has been carried out", {
    code: "request_noted",
    subject: key,
  });
}

/** Returns the body of the note of a request that wrote a resource, and the id of the resource whose text is in it. */
export function notedResource(resource: Omit<Resource, "content"> & { readonly content?: string }): {
  readonly body: object;
  readonly textOf: string | null;
} {
  // A long text is not serialised only to measure it.
  const isLong =
    (resource.content?.length ?? 0) > RECORD_CHARS_MAX || JSON.stringify(resource).length > RECORD_CHARS_MAX;
  const hasText = !isLong && resource.content !== undefined && resource.content !== "";
  return { body: isLong ? { resourceId: resource.id } : { resource }, textOf: hasText ? resource.id : null };
}
