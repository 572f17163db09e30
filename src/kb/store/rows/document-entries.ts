import { DESCRIPTION_CHARS } from "../../../wire/constants.ts";
import type { DocumentEntry } from "../../../wire/documents.ts";
import { withoutMarker } from "../../../wire/marker.ts";
import { metadataOf, type ResourceRow } from "./records.ts";

/** Columns of a resource for its entry in a list of documents. */
export const ENTRY_COLUMNS = `id AS _id, title, description, url, metadata, file_metadata, status,
  CASE status WHEN 'error' THEN status_error END AS code, CASE status WHEN 'error' THEN status_message END AS message,
  warning, created_at AS "createdAt", updated_at AS "updatedAt", version, chunks`;

/** A row of ENTRY_COLUMNS. */
export type EntryRow = Omit<DocumentEntry, "path"> & Pick<ResourceRow, "metadata" | "file_metadata">;

/** The beginning of a description that an entry has. By whole characters, so that none is cut in two. */
const BEGINNING = new RegExp(`^.{0,${DESCRIPTION_CHARS}}`, "su");

/** Converts a row to an entry. */
export function entryOf({ metadata, file_metadata, ...entry }: EntryRow): DocumentEntry {
  const { path } = metadataOf({ metadata, file_metadata });
  const [description = ""] = BEGINNING.exec(withoutMarker(entry.description)) ?? [];
  return { ...entry, description, path: typeof path === "string" ? path : null };
}

/** Columns of a resource in which a list of documents looks for words. */
export const WORD_COLUMNS = "title, description, url, metadata, file_metadata";

/** A row of WORD_COLUMNS. */
export type WordRow = Pick<ResourceRow, "title" | "description" | "url" | "metadata" | "file_metadata">;

/** Returns a filter of documents that contain each word of a query, whatever its case; undefined: the query has no words. Pure. */
export function wordFilter(query: string | undefined): ((row: WordRow) => boolean) | undefined {
  const words = folded(query ?? "")
    .split(/\s+/)
    .filter((word) => word !== "");
  if (words.length === 0) return undefined;
  return ({ title, description, url, metadata, file_metadata }) => {
    const whole = folded([title, withoutMarker(description), url, metadata, file_metadata].join("\n"));
    return words.every((word) => whole.includes(word));
  };
}

/** Removes the differences of case and of how accents are encoded. */
function folded(text: string): string {
  return text.normalize("NFC").toLowerCase();
}
