import type { IncomingHttpHeaders } from "node:http";
import type { Precondition } from "../../resources/request-context.ts";
import { Refusal } from "../../resources/refusal.ts";
import type { Resource } from "../../store/resources.ts";

/** One entity tag, weak or strong, of the list in a header. */
const TAG = /^\s*(W\/)?"([\x21\x23-\x7e\x80-\xff]*)"\s*(?:,|$)/;

/** Returns the strong entity tag of a resource, which differs after every change of its record. */
export function etagOf({ id, revision }: Pick<Resource, "id" | "revision">): string {
  return `"${id}-${revision}"`;
}

/** Returns the precondition of `If-Match`; undefined without the header. Throws `invalid_header`. */
export function preconditionOf(headers: IncomingHttpHeaders): Precondition | undefined {
  const header = headers["if-match"];
  if (header === undefined) return undefined;
  const tags = readTags(header, "If-Match");
  // A weak tag never matches here (RFC 9110, 13.1.1).
  return (resource) =>
    tags === "*" || tags.some(({ isWeak, text }) => !isWeak && `"${text}"` === etagOf(resource));
}

/** Reports whether `If-None-Match` lists this tag. Throws `invalid_header`. */
export function isKnown(headers: IncomingHttpHeaders, etag: string): boolean {
  const header = headers["if-none-match"];
  if (header === undefined) return false;
  const tags = readTags(header, "If-None-Match");
  return tags === "*" || tags.some(({ text }) => `"${text}"` === etag.replace(/^W\//, ""));
}

/** Maximum wait for work to end before the answer: proxies time out after a minute. */
const WAIT_SECONDS_MAX = 50;

/** The caller prefers an answer before the work is done. */
export interface AsyncPreference {
  /** Wait for the end of the work before the early answer. */
  readonly waitMs: number;
}

/**
 * Reads from `Prefer` when to answer (RFC 7240, 4.1 and 4.3); undefined: when the work is done. Ignores unknown and
 * malformed preferences. Of several with one name, the first counts.
 */
export function asyncPreference(headers: IncomingHttpHeaders): AsyncPreference | undefined {
  const header = headers["prefer"];
  const preferences = (Array.isArray(header) ? header.join(",") : (header ?? "")).split(",");
  const words = preferences.map((each) => (each.split(";", 1)[0] ?? "").trim().toLowerCase());
  if (!words.includes("respond-async")) return undefined;
  const waits = words.flatMap((word) => /^wait\s*=\s*"?(\d{1,9})"?$/.exec(word)?.[1] ?? []);
  return { waitMs: 1000 * Math.min(WAIT_SECONDS_MAX, Number(waits[0] ?? 0)) };
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
