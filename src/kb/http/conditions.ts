import type { IncomingHttpHeaders } from "node:http";
import type { Precondition } from "../resources/asked.ts";
import { Refusal } from "../resources/refusal.ts";
import type { Resource } from "../store/store.ts";

/** An entity tag, weak or strong, as a header lists them. */
const TAG = /^\s*(W\/)?"([\x21\x23-\x7e\x80-\xff]*)"\s*(?:,|$)/;

/** The strong entity tag of a resource: another one after every change of its record. */
export function etagOf({ id, revision }: Pick<Resource, "id" | "revision">): string {
  return `"${id}-${revision}"`;
}

/** What `If-Match` asks of a resource; undefined where it was not sent. Throws `invalid_header`. */
export function preconditionOf(headers: IncomingHttpHeaders): Precondition | undefined {
  const header = headers["if-match"];
  if (header === undefined) return undefined;
  const tags = readTags(header, "If-Match");
  // A weak tag never matches here (RFC 9110, 13.1.1).
  return (resource) =>
    tags === "*" || tags.some(({ isWeak, text }) => !isWeak && `"${text}"` === etagOf(resource));
}

/** Whether the caller has an answer with this tag already, by its `If-None-Match`. Throws `invalid_header`. */
export function isKnown(headers: IncomingHttpHeaders, etag: string): boolean {
  const header = headers["if-none-match"];
  if (header === undefined) return false;
  const tags = readTags(header, "If-None-Match");
  return tags === "*" || tags.some(({ text }) => `"${text}"` === etag.replace(/^W\//, ""));
}

/** Whether the caller wants an answer before the work is done (RFC 7240). Preferences we do not know are ignored. */
export function wantsAsync(headers: IncomingHttpHeaders): boolean {
  const header = headers["prefer"];
  const preferences = (Array.isArray(header) ? header.join(",") : (header ?? "")).split(",");
  return preferences.some((each) => each.split(";", 1)[0]?.trim().toLowerCase() === "respond-async");
}

interface Tag {
  readonly isWeak: boolean;
  readonly text: string;
}

function readTags(header: string, name: string): readonly Tag[] | "*" {
  if (header.trim() === "*") return "*";
  const tags: Tag[] = [];
  let rest = header;
  while (rest.trim() !== "") {
    const found = TAG.exec(rest);
    if (found === null) {
      throw new Refusal("invalid_header", `${name}: expected * or ETags in quotes, separated by commas.`);
    }
    tags.push({ isWeak: found[1] !== undefined, text: found[2] ?? "" });
    rest = rest.slice(found[0].length);
  }
  return tags;
}
