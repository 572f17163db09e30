import { z } from "zod";
import { readText } from "../../../lib/read-text.ts";
import type { ResourceRecord } from "../../../wire/resource.ts";
import { ROUTES } from "../../../wire/routes.ts";
import { type Later, readAnswer, type Reply } from "./answer.ts";
import { splitList } from "./list-stream.ts";
import { readRecord, type OnOddField } from "./record.ts";
import type { Transport } from "./transport.ts";

/** The end of a page. */
export interface PageEnd {
  readonly nextCursor: string | undefined;
  /** Resources that were skipped because they have no usable `_id`. */
  readonly nameless: number;
}

/** Longest refusal of a list that is buffered. The list itself is parsed as a stream. */
const REFUSAL_BYTES_MAX = 1024 * 1024;

const ListEnd = z.object({
  success: z.literal(true),
  data: z.object({
    resources: z.array(z.unknown()),
    nextCursor: z.union([z.string(), z.int().transform(String)]).nullish(),
  }),
});

/** Reads one page of the list. `onResource` may receive part of a page that turns out to be broken. */
export async function readPage(
  { db, auth }: Pick<Transport, "db" | "auth">,
  query: URLSearchParams,
  onResource: (resource: ResourceRecord) => void,
  { now, onOddField }: { readonly now: () => number; readonly onOddField: OnOddField },
  signal: AbortSignal,
): Promise<Reply<PageEnd>> {
  const path = `${db.prefix}${ROUTES.byCollection}?${query.toString()}`;
  const answer = await db.pool.request({ method: "GET", path, headers: auth, signal });
  const head = { status: answer.statusCode, headers: answer.headers, atMs: now() };
  if (answer.statusCode !== 200) {
    // A 404 in the service's own words: it does not know the collection, so the collection is empty.
    const reply = readAnswer(
      { ...head, text: await readText(answer.body, REFUSAL_BYTES_MAX) },
      ListEnd,
      "resource",
    );
    return reply.kind === "done" ? unexpected(`HTTP ${answer.statusCode} for a list`) : reply;
  }
  let nameless = 0;
  const text = await splitList(answer.body, (resource) => {
    const record = readRecord(JSON.parse(resource), onOddField);
    if (record === undefined) nameless += 1;
    else onResource(record);
  });
  const reply = readAnswer({ ...head, text }, ListEnd, "address");
  if (reply.kind !== "done") return reply;
  // Resources that the parser did not recognise must not count as absent.
  const { length: left } = reply.value.data.resources;
  if (left > 0) return unexpected(`${left} resources in the list have an unknown form`);
  // Some services end a list with an empty cursor, which would restart it.
  const nextCursor = reply.value.data.nextCursor || undefined;
  if (nextCursor !== undefined && nextCursor === query.get("cursor"))
    return unexpected("a page of the list is followed by itself");
  return { kind: "done", value: { nextCursor, nameless } };
}

/** An answer that no correct service gives. */
export function unexpected(reason: string): Later {
  return { kind: "later", acted: "no", blame: "request", reason };
}
