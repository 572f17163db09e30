import { z } from "zod";
import { ResourceRecord } from "../../../wire/resource.ts";
import type { Reply } from "./answer.ts";

/** Notified of a field of an answer that kbsync cannot use, and of what it holds, in words. */
export type OnOddField = (field: string, value: string) => void;

/** An answer about one resource. The record is read on its own. */
export const RecordAnswer = z.object({ data: z.unknown().optional() });

/** A code of kbsync's own: the service accepted a request and named no resource. */
export const NO_ID = "no_id";

const Answered = ResourceRecord.extend({ collectionId: z.string().min(1).optional() });

/**
 * Reads a resource of an answer. Only its `_id` is needed, and a whole number counts as its decimal text. Any other field
 * without a usable value counts as absent: a service that writes null for "none" must not make kbsync doubt its answers.
 * Changes `value`, which must be fresh from `JSON.parse`. Returns undefined without a usable `_id`.
 */
export function readRecord(value: unknown, onOddField: OnOddField): ResourceRecord | undefined {
  const strict = Answered.safeParse(value);
  if (strict.success) return strict.data;
  for (const { path } of strict.error.issues) {
    const [key, owner] = [path.at(-1), ownerOf(value, path)];
    if (key === undefined || owner === undefined) return undefined;
    const odd = owner[key];
    // Above this, JSON.parse has rounded the number.
    if (key === "_id" && Number.isSafeInteger(odd)) owner[key] = String(odd);
    else if (key === "_id") return undefined;
    else {
      onOddField(path.join("."), wordsOf(odd));
      Reflect.deleteProperty(owner, key);
    }
  }
  return Answered.safeParse(value).data;
}

/** Reads the resource of an answer to a request that must name one. */
export function withRecord(
  reply: Reply<{ readonly data?: unknown }>,
  onOddField: OnOddField,
): Reply<ResourceRecord> {
  if (reply.kind !== "done") return reply;
  const record = readRecord(reply.value.data, onOddField);
  if (record !== undefined) return { kind: "done", value: record };
  return { kind: "refused", code: NO_ID, message: "the service's answer names no _id" };
}

/** Reads what the answer to a request about a known resource shows of it. Everything may be missing. */
export function shownOf(data: unknown, docId: string, onOddField: OnOddField): ResourceRecord {
  const shown = typeof data === "object" ? data : {};
  return (
    readRecord(shown, () => undefined) ??
    readRecord({ ...shown, _id: docId }, onOddField) ??
    ResourceRecord.parse({ _id: docId })
  );
}

/** Returns the object that holds the last key of the path. */
function ownerOf(value: unknown, path: readonly PropertyKey[]): Record<PropertyKey, unknown> | undefined {
  let owner = value;
  for (const key of path.slice(0, -1)) owner = isObject(owner) ? owner[key] : undefined;
  return isObject(owner) ? owner : undefined;
}

function isObject(value: unknown): value is Record<PropertyKey, unknown> {
  return typeof value === "object" && value !== null;
}

/** Names the kind of a value. The value itself may be a document's text, which no log may show. */
function wordsOf(value: unknown): string {
  if (value === null) return "null";
  if (value === "") return "an empty text";
  if (Array.isArray(value)) return "a list";
  return typeof value === "string" ? "a text" : `a ${typeof value}`;
}
