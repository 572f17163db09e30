import { KbsyncError } from "../../../lib/failure.ts";
import type { Settings } from "../../../wire/primitives.ts";
import type { UpdateBody } from "../../../wire/resource.ts";
import { ingestLine, type NewJob } from "../../queue/queue.ts";
import type { NewResource, ResourceJob } from "../resources.ts";

/** What an entry of the queue `ingest` changes of its document. Fields that are undefined are lost in its JSON. */
export interface JobBody {
  readonly update: UpdateBody;
  /** The text is the first one of a document that was created in the background. */
  readonly completesCreate?: true;
  /** The part of `update` that requests without a text asked for. It is written even if the text cannot be read. */
  readonly apart?: Omit<UpdateBody, "url" | "content" | "locations">;
}

/** Returns the entry of a document. */
export function ingestJob(
  { accountId, ownerId, id }: Pick<NewResource, "accountId" | "ownerId" | "id">,
  job: ResourceJob,
): NewJob {
  return { ...job, queue: "ingest", accountId, ownerId, line: ingestLine(accountId, ownerId), name: id };
}

/**
 * Merges a newer change of a document into the one that waits: a newer text replaces the waiting one, other fields that the newer change
 * does not name stay. `stored` are the settings of the document. Throws `invalid_field` if the merged settings exclude each other.
 */
export function mergeJobs(
  waiting: string,
  newer: string,
  stored: Settings,
): { readonly body: string; /** Whether the pages that were read stay. */ readonly keepsPages: boolean } {
  const before = JSON.parse(waiting) as JobBody; // both written as one
  const { update } = JSON.parse(newer) as JobBody;
  const { url, content, locations, ...kept } = before.update;
  const text = hasText(update) ? {} : { url, content, locations };
  const settings = { ...kept.settings, ...update.settings };
  const { chunkSize = stored.chunkSize, chunkOverlap = stored.chunkOverlap } = settings;
  const merged: JobBody = {
    ...(before.completesCreate && { completesCreate: true }),
    update: { ...kept, ...text, ...update, ...(Object.keys(settings).length > 0 && { settings }) },
    ...apartOf(before, update),
  };
  if (chunkOverlap < chunkSize) {
    // The same file may come again as another upload. Pages are known by its bytes.
    return { body: JSON.stringify(merged), keepsPages: update.content === undefined };
  }
  throw new KbsyncError(
    `settings.chunkOverlap: expected an integer below the queued chunkSize ${chunkSize}, got ${chunkOverlap}`,
    { code: "invalid_field", hint: "A setting that is not sent keeps its value: send both." },
  );
}

function apartOf({ update, apart }: JobBody, newer: UpdateBody): Pick<JobBody, "apart"> {
  const parts = [hasText(update) ? apart : update, hasText(newer) ? undefined : newer];
  const settings = { ...parts[0]?.settings, ...parts[1]?.settings };
  const merged = { ...parts[0], ...parts[1], ...(Object.keys(settings).length > 0 && { settings }) };
  return Object.keys(merged).length === 0 ? {} : { apart: merged };
}

/** Reports whether a change replaces the text of its document. */
export function hasText({ url, content }: UpdateBody): boolean {
  return url !== undefined || content !== undefined;
}
