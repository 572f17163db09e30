import { hash } from "node:crypto";
import { KbsyncError } from "../../../lib/failure.ts";
import { STILL_READ } from "../../../wire/constants.ts";
import type { LocatedText } from "../../../formats/markup/located-text.ts";
import { withLines } from "../locations.ts";
import type { Chunking } from "../chunks.ts";
import type { Expected, NewResource, ResourceChange, ResourceKey, ResourceStatus } from "../resources.ts";
import { resourceOf, type ResourceRow } from "./records.ts";
import type { UserMetadata } from "../../../wire/metadata.ts";

/** The columns of a row that say where its text lies. */
export interface TextColumns {
  readonly head: string;
  readonly version: number;
  readonly firstRow: number;
  readonly chunks: number;
}

/** The columns of a new row. */
export type NewColumns = ReturnType<typeof newColumns> & TextColumns & { readonly scope: number };
/** The columns of a changed row. */
export type ChangedColumns = ReturnType<typeof changedColumns> &
  TextColumns & { readonly status: ResourceStatus };

/**
 * Throws `precondition_failed` if a resource that is to change is not in the expected state, and `resource_changed` if it is not the
 * one that the change is based on.
 */
export function refuseUnexpected(
  row: ResourceRow | undefined,
  { id, expectedRevision, basedOn }: ResourceKey & Expected,
): void {
  if (row === undefined) return;
  if (basedOn !== undefined && (row.version !== basedOn.version || row.title !== basedOn.title))
    throw new KbsyncError("another process has changed the resource", {
      code: "resource_changed",
      subject: id,
    });
  if (expectedRevision === undefined || row.revision === expectedRevision) return;
  throw new KbsyncError("the resource has changed: If-Match names another state of it", {
    code: "precondition_failed",
    subject: id,
    hint: "read it again, and repeat the change with the ETag of that answer",
  });
}

/** Returns the columns of a new resource. Without a chunking it is `queued`, and `content` is not its text yet. */
export function newColumns(resource: NewResource, chunking: Chunking | undefined) {
  const { id, accountId, origin, title, description, url, createdAt } = resource;
  return {
    id,
    accountId,
    origin,
    title,
    description,
    url,
    createdAt,
    settings: JSON.stringify(resource.settings),
    metadata: JSON.stringify(resource.metadata ?? {}),
    fileMetadata: JSON.stringify(resource.fileMetadata ?? {}),
    fileToken: resource.fileToken ?? null,
    status: chunking === undefined ? "queued" : "chunked",
    strategyUsed: chunking?.strategyUsed ?? null,
    warning: chunking?.warning ?? null,
    sha256: chunking === undefined ? null : digestOf(resource.content),
    locations: locationsColumn(resource.content, resource.locations),
    label: labelOf(title, resource.metadata ?? {}),
  };
}

/** Returns the columns of a changed resource; `text` is its text after the change. */
export function changedColumns(
  before: ResourceRow,
  change: ResourceChange,
  chunking: Chunking | undefined,
  text: string,
) {
  const clearsError = chunking !== undefined || change.clearsError === true;
  const hasText = before.version > 0 || chunking !== undefined;
  const keptSha256 = change.content === undefined ? before.sha256 : null;
  return {
    number: before.number,
    title: change.title ?? before.title,
    label: labelAfter(before, change),
    description: change.description ?? before.description,
    url: change.url ?? before.url,
    settings: change.settings === undefined ? before.settings : JSON.stringify(change.settings),
    metadata: change.metadata === undefined ? before.metadata : JSON.stringify(change.metadata),
    fileMetadata:
      change.content === undefined ? before.file_metadata : JSON.stringify(change.fileMetadata ?? {}),
    statusMessage: clearsError ? null : before.status_message,
    statusError: clearsError ? null : before.status_error,
    fileToken: change.fileToken === undefined ? before.file_token : change.fileToken,
    sha256: hasText ? (keptSha256 ?? digestOf(text)) : null,
    locations: change.content === undefined ? before.locations : locationsColumn(text, change.locations),
    strategyUsed: chunking === undefined ? before.strategy_used : (chunking.strategyUsed ?? null),
    warning: chunking === undefined ? before.warning : (chunking.warning ?? null),
    refreshedAt: change.completesCreate === true ? before.refreshed_at : change.nowIso,
    nowIso: change.nowIso,
  };
}

/** Returns the label after a change. It stays as it is if title and metadata do. */
function labelAfter(before: ResourceRow, { title, metadata }: ResourceChange): string {
  if (title === undefined && metadata === undefined) return before.label;
  return labelOf(title ?? before.title, metadata ?? resourceOf(before, "").metadata);
}

/** Returns the SHA-256 of a text as UTF-8. */
function digestOf(text: string): Buffer {
  return hash("sha256", text, "buffer");
}

function locationsColumn(text: string, locations: LocatedText["locations"]): string | null {
  return locations === undefined ? null : JSON.stringify(withLines({ text, locations }));
}

/** SQL expression over a resource for its warning when a change of it is queued: without a text, it was about that reading. */
export const WARNING_OF_TEXT = "CASE WHEN version > 0 THEN warning END";

/** The same after a failure: what was still being read never is. */
export const WARNING_AFTER_FAILURE = `replace(${WARNING_OF_TEXT}, '${STILL_READ}', 'not read.')`;

/** Most words of a label: every chunk of the resource is found by all of them, so many would drown its own words. */
const LABEL_WORDS_MAX = 64;
/** Also splits joined words, such as `snake_case`; the index splits there as well. */
const NO_WORD = /[^\p{L}\p{N}\p{M}\p{Co}]+/u;

/**
 * Returns the words of a resource's path, name and tags that its title does not have, each once, separated by spaces. Words
 * find the resource by them, as by its title; they are in no chunk and no vector. Empty without such metadata. Pure.
 */
function labelOf(title: string, { path, name, tags }: UserMetadata): string {
  const inTitle = new Set(wordsOf(title));
  const words = [path, name, tags]
    .flat()
    .flatMap((value) => (typeof value === "string" ? wordsOf(value) : []))
    .filter((word) => !inTitle.has(word));
  return [...new Set(words)].slice(0, LABEL_WORDS_MAX).join(" ");
}

function wordsOf(text: string): string[] {
  return text
    .toLowerCase()
    .split(NO_WORD)
    .filter((word) => word !== "");
}
