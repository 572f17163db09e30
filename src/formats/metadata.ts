import { hash } from "node:crypto";
import {
  FILE_METADATA_KEYS,
  METADATA_BYTES_MAX,
  METADATA_STRING_CHARS_MAX,
  METADATA_VALUES_MAX,
  SERVICE_METADATA_KEYS,
  type UserMetadata,
} from "../wire/metadata.ts";
import { DIGEST_CHARS } from "./digest.ts";
import type { DocumentFields, FieldValue } from "./fields.ts";

/** The facts about a document's file. */
export interface MetadataFacts {
  /** Below the source, `/` between parts. */
  readonly path: string;
  readonly sizeBytes: number;
  readonly modifiedMs: number;
  /** Undefined where the file system does not record it. */
  readonly createdMs: number | undefined;
  /** The service has an address of the document, from which it reads who wrote it and how many pages it has. */
  readonly hasUrl: boolean;
  readonly fields: DocumentFields;
}

/** The metadata of a file from the configuration and the folders. */
export interface MetadataParts {
  /** Fixed metadata of the rules that match, merged; overrides what the document states, except tags, which are joined. */
  readonly set: DocumentFields;
  readonly folderDescription: string | undefined;
}

/**
 * Names whose meaning is kbsync's or the service's own. A field of a document with such a name is sent below `fm`. Names
 * that only some documents have (`from`, `date`, `author`) are free: there the field means the same.
 */
const OWN_NAMES: ReadonlySet<string> = new Set([...FILE_METADATA_KEYS, ...SERVICE_METADATA_KEYS]);
/** Names that follow the file without saying anything about its document. They are sent, and a change of them alone is not. */
const FILE_NAMES: ReadonlySet<string> = new Set(["modified", "created", "size"]);
/** Names that the service reads from a document that it fetches. */
const READ_NAMES: ReadonlySet<string> = new Set(["author", "pages"]);

/** Folders above a file that are listed, from the outermost on. */
const FOLDERS_MAX = 48;
/** Part of the bytes that folders may take, so that a deep path leaves some for tags. */
const FOLDER_BYTES_MAX = METADATA_BYTES_MAX / 4;

/**
 * Composes the metadata of a document for filters. Always within the bounds of the service: what does not fit is left out,
 * the document's own fields first.
 */
export function composeMetadata(
  facts: MetadataFacts,
  { set, folderDescription }: MetadataParts,
): UserMetadata {
  const { path, sizeBytes, modifiedMs, createdMs, hasUrl, fields } = facts;
  const name = path.slice(path.lastIndexOf("/") + 1);
  const metadata = openMetadata();
  metadata.add("path", path.toWellFormed());
  metadata.add("name", name.toWellFormed());
  metadata.add("kind", kindOf(name));
  metadata.add("modified", timeOf(modifiedMs));
  if (createdMs !== undefined) metadata.add("created", timeOf(createdMs));
  metadata.add("size", sizeBytes);
  const folders = foldersOf(path);
  if (folders.length > 0) metadata.add("folder", folders);
  if (folderDescription !== undefined) metadata.add("folderDescription", cut(folderDescription));
  const tags = [...new Set([...fields.tags, ...set.tags])];
  if (tags.length > 0) metadata.add("tags", tags);

  const values: Record<string, FieldValue> = { ...fields.values, ...set.values };
  const { lang } = values;
  const language = typeof lang === "string" ? lang : fields.language;
  if (values["language"] === undefined) metadata.add("language", language);
  for (const [field, value] of Object.entries(values)) {
    if (hasUrl && READ_NAMES.has(field)) continue;
    if (OWN_NAMES.has(field)) metadata.addBelow("fm", field, value);
    else metadata.add(field, value);
  }
  return metadata.all();
}

/**
 * Hash of metadata for comparison: equal for equal values in whatever order of names. `modified`, `created` and `size` do not
 * count. Where the service has an address, neither does what it reads from there.
 */
export function hashMetadata(metadata: UserMetadata, hasUrl: boolean): string {
  const counted = Object.entries(metadata).filter(
    ([name]) => !FILE_NAMES.has(name) && !(hasUrl && READ_NAMES.has(name)),
  );
  return hash("sha256", JSON.stringify(sorted(Object.fromEntries(counted))), "base64url").slice(
    0,
    DIGEST_CHARS,
  );
}

/** The same for the metadata in a record of the service, which holds the service's own as well; undefined if there is no other. */
export function hashListedMetadata(
  listed: Readonly<Record<string, unknown>> | null | undefined,
  hasUrl: boolean,
): string | undefined {
  const own = Object.entries(listed ?? {}).filter(([name]) => !SERVICE_METADATA_KEYS.has(name));
  return own.length === 0 ? undefined : hashMetadata(Object.fromEntries(own), hasUrl);
}

/** Every folder above a path, the outermost first. */
function foldersOf(path: string): readonly string[] {
  const folders: string[] = [];
  let bytes = 0;
  for (let end = path.indexOf("/"); end !== -1; end = path.indexOf("/", end + 1)) {
    const folder = path.slice(0, end).toWellFormed();
    bytes += jsonBytes(folder) + 1;
    if (
      folders.length === FOLDERS_MAX ||
      bytes > FOLDER_BYTES_MAX ||
      folder.length > METADATA_STRING_CHARS_MAX
    )
      break;
    folders.push(folder);
  }
  return folders;
}

/** The extension of a name in lower case; `text` for a name without one. */
function kindOf(name: string): string {
  return /[^.]\.([\p{L}\p{N}_-]{1,20})$/u.exec(name)?.[1]?.toLowerCase() ?? "text";
}

function timeOf(ms: number): string | undefined {
  const time = new Date(ms);
  return Number.isNaN(time.getTime()) ? undefined : time.toISOString();
}

/** Cuts a text at its start, where what lies closest to the file is last, and never through a character. */
function cut(text: string): string {
  if (text.length <= METADATA_STRING_CHARS_MAX) return text.toWellFormed();
  return text
    .slice(-METADATA_STRING_CHARS_MAX)
    .replace(/^[\uDC00-\uDFFF]/, "")
    .toWellFormed();
}

interface OpenMetadata {
  /** Adds a value if it fits. */
  add(name: string, value: FieldValue | readonly string[] | undefined): void;
  /** Adds a value to an object of this name. */
  addBelow(name: string, inner: string, value: FieldValue): void;
  all(): UserMetadata;
}

function openMetadata(): OpenMetadata {
  const all: Record<string, unknown> = {};
  let bytes = 2;
  let values = 0;
  /** Counts a name with its value, and the comma after it. */
  const takes = (name: string, value: FieldValue | readonly string[], more = 0): boolean => {
    const size = jsonBytes(name) + jsonBytes(value) + 2 + more;
    const count = Array.isArray(value) ? value.length : 1;
    const isLong = typeof value === "string" && value.length > METADATA_STRING_CHARS_MAX;
    if (isLong || bytes + size > METADATA_BYTES_MAX || values + count > METADATA_VALUES_MAX) return false;
    bytes += size;
    values += count;
    return true;
  };
  return {
    add: (name, value) => {
      if (value !== undefined && takes(name, value)) all[name] = value;
    },
    addBelow: (name, inner, value) => {
      const object = all[name] as Record<string, FieldValue> | undefined; // only this function adds objects
      if (takes(inner, value, object === undefined ? jsonBytes(name) + 4 : 0))
        all[name] = { ...object, [inner]: value };
    },
    all: () => all,
  };
}

function jsonBytes(value: FieldValue | readonly string[]): number {
  return Buffer.byteLength(JSON.stringify(value));
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, inner]) => [name, sorted(inner)]),
  );
}
