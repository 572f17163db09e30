import { keyProblem, METADATA_STRING_CHARS_MAX } from "../wire/metadata.ts";

/** A value that a document states about itself. */
export type FieldValue = string | number | boolean;

/** The own metadata of a document: front matter, or the headers of a mail. `tags` are apart, because they are a list. */
export interface DocumentFields {
  readonly tags: readonly string[];
  readonly values: Readonly<Record<string, FieldValue>>;
  /** The language of its text (ISO 639-1), where no field names one and it is certain. */
  readonly language?: string;
}

export const NO_FIELDS: DocumentFields = { tags: [], values: {} };

/** More are not written by hand. */
const TAGS_MAX = 64;
const TAG_CHARS_MAX = 200;
const VALUES_MAX = 64;

/** Sent as such. */
const NAMING: ReadonlySet<string> = new Set(["title", "description"]);
/** A field whose name is the service's own is sent below another key. */
const FIELD_LEVEL = 2;

/**
 * Reads the fields of parsed front matter: tags, and all other scalar values. Title and description are sent as such. Drops
 * names that a filter cannot name and strings longer than metadata may be: a cut value would equal no filter.
 */
export function readFields(raw: Readonly<Record<string, unknown>>): DocumentFields {
  const values: Record<string, FieldValue> = {};
  for (const [name, value] of Object.entries(raw).slice(0, VALUES_MAX)) {
    if (name === "tags" || NAMING.has(name) || keyProblem(name, FIELD_LEVEL) !== undefined) continue;
    const scalar = scalarOf(value);
    if (scalar !== undefined) values[name] = scalar;
  }
  return { tags: readTags(raw["tags"]), values };
}

/** Tags as a list, or as one line: `a, b`, or `a b` where it has no comma. A leading `#` is notation. */
export function readTags(given: unknown): readonly string[] {
  const listed =
    typeof given === "string"
      ? given.split(given.includes(",") ? "," : /\s+/)
      : Array.isArray(given)
        ? given
        : [];
  const tags = listed
    .filter((tag) => typeof tag === "string" || Number.isFinite(tag))
    .map((tag) => String(tag).trim().replace(/^#+/, "").toWellFormed())
    .filter((tag) => tag !== "" && tag.length <= TAG_CHARS_MAX);
  return [...new Set(tags)].slice(0, TAGS_MAX);
}

function scalarOf(value: unknown): FieldValue | undefined {
  if (typeof value === "boolean") return value;
  // JSON has no negative zero.
  if (typeof value === "number") return Number.isFinite(value) ? value + 0 : undefined;
  if (typeof value !== "string" || value.trim() === "" || value.length > METADATA_STRING_CHARS_MAX)
    return undefined;
  return value.toWellFormed();
}
