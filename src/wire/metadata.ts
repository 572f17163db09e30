import type { z } from "zod";

/** Largest metadata of a resource, as JSON in UTF-8: every record includes it. */
export const METADATA_BYTES_MAX = 8 * 1024;
/** Levels of objects, and so the keys in the path of a filter. */
const METADATA_LEVELS_MAX = 4;
/** Values, counting each item of a list: each takes an index entry. */
export const METADATA_VALUES_MAX = 128;
/** Longest key in characters. */
const METADATA_KEY_CHARS_MAX = 64;
/** Longest string in characters: filters compare whole values, and texts belong in the content. */
export const METADATA_STRING_CHARS_MAX = 1024;

/** Keys in a record's `metadata` that belong to the service. */
export const SERVICE_METADATA_KEYS: ReadonlySet<string> = new Set([
  "status",
  "error",
  "message",
  "strategyUsed",
  "warning",
]);
/** Operators of filters, which a condition on such a key could not be distinguished from. */
const FILTER_OPERATORS: ReadonlySet<string> = new Set(["and", "or", "not"]);

/** Keys that a daemon sends of every file, or of every one that has them. Others are the document's own. */
export const FILE_METADATA_KEYS: ReadonlySet<string> = new Set([
  "path",
  "folder",
  "name",
  "kind",
  "modified",
  "created",
  "size",
  "folderDescription",
  "tags",
  "fm",
]);

/** User metadata: an object of strings, numbers, booleans, nulls, lists of those, and such objects. */
export type UserMetadata = Readonly<Record<string, unknown>>;

/** Checks the metadata of a body, for `z.transform`. Problems name their field. */
export function readMetadata(given: unknown, context: z.RefinementCtx): UserMetadata {
  const refuse = (path: readonly PropertyKey[], message: string): void => {
    context.addIssue({ code: "custom", path: [...path], message });
  };
  let values = 0;

  const readScalar = (path: readonly PropertyKey[], value: unknown): void => {
    values += 1;
    if (typeof value === "string") {
      if (value.length > METADATA_STRING_CHARS_MAX)
        refuse(path, `expected at most ${METADATA_STRING_CHARS_MAX} characters`);
    } else if (!isScalar(value)) {
      refuse(path, "expected a string, a number, true, false or null");
    }
  };
  const readObject = (path: readonly PropertyKey[], object: object, level: number): void => {
    if (level > METADATA_LEVELS_MAX) {
      refuse(path, `expected at most ${METADATA_LEVELS_MAX} levels of objects`);
      return;
    }
    for (const [key, value] of Object.entries(object)) {
      const at = [...path, key];
      const problem = keyProblem(key, level);
      if (problem !== undefined) refuse(at, problem);
      if (Array.isArray(value)) for (const [index, item] of value.entries()) readScalar([...at, index], item);
      else if (typeof value === "object" && value !== null) readObject(at, value, level + 1);
      else readScalar(at, value);
    }
  };

  if (typeof given !== "object" || given === null || Array.isArray(given)) {
    refuse([], "expected an object");
    return {};
  }
  readObject([], given, 1);
  if (values > METADATA_VALUES_MAX) refuse([], `expected at most ${METADATA_VALUES_MAX} values`);
  const text = JSON.stringify(given);
  if (new TextEncoder().encode(text).length > METADATA_BYTES_MAX)
    refuse([], `expected at most ${METADATA_BYTES_MAX} bytes of JSON`);
  return JSON.parse(text, wellFormed) as UserMetadata; // an object, as just checked
}

/** Returns why a key is not allowed, or undefined. `level` is 1 for the keys of the metadata itself. */
export function keyProblem(key: string, level: number): string | undefined {
  if (key === "" || key.length > METADATA_KEY_CHARS_MAX)
    return `expected a key of 1 to ${METADATA_KEY_CHARS_MAX} characters`;
  // Two such keys could become equal in the store.
  if (!key.isWellFormed()) return "expected a key without half of a character";
  if (/[.\p{Cc}]/u.test(key)) return "expected a key without dots and control characters";
  if (FILTER_OPERATORS.has(key) || key === "__proto__") return `expected another key than ${key}`;
  if (level === 1 && SERVICE_METADATA_KEYS.has(key))
    return `expected another key: ${key} is the service's own`;
  return undefined;
}

function isScalar(value: unknown): boolean {
  // JSON allows numbers beyond a double, which would become null.
  return value === null || typeof value === "boolean" || Number.isFinite(value);
}

/** A lone surrogate has no UTF-8 form: a store would change it. */
function wellFormed(_key: string, value: unknown): unknown {
  return typeof value === "string" ? value.toWellFormed() : value;
}
