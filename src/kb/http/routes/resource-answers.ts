import { Readable } from "node:stream";
import type { DeletedResource, LiveResource } from "../../../wire/answers.ts";
import type { KnowledgeBase } from "../../resources/knowledge-base.ts";
import { textBytes } from "../../resources/list.ts";
import type { Resource } from "../../store/resources.ts";
import { etagOf } from "../body/conditions.ts";
import { oneText, PART_CHARS } from "../body/list-text.ts";
import type { ResponseShare } from "../limits/response-memory.ts";
import type { Urgent } from "../limits/urgent.ts";
import { answer } from "../operation/operation.ts";
import type { HttpParts } from "../operation/operation.ts";

/** Returns the answer with a whole record, streamed if its text is long. Counts its memory even if there is none left. */
export function recordAnswer<T extends LiveResource | DeletedResource>(
  parts: HttpParts,
  message: string,
  resource: Resource,
  share: ResponseShare,
  recordOf: (resource: Resource) => T,
) {
  share.force(textBytes(resource));
  const record = recordOf(withReachableUrl(parts.kb, resource));
  const etag = etagOf(resource);
  return record.content.length <= PART_CHARS
    ? { ...answer(200, message, record), etag }
    : { status: 200, stream: streamOf(parts, oneText(message, record)), etag };
}

/** Returns pieces of text as a stream, each sent in a slice of bulk work. */
export function streamOf({ urgent }: HttpParts, text: Iterable<string> | AsyncIterable<string>): Readable {
  return Readable.from(inSlices(text, urgent), { objectMode: false });
}

/** Yields pieces of text, each in a slice of bulk work: a fast client would otherwise read all in one turn. */
async function* inSlices(
  text: Iterable<string> | AsyncIterable<string>,
  { pause }: Pick<Urgent, "pause">,
): AsyncGenerator<string> {
  for await (const piece of text) {
    yield piece;
    await pause();
  }
}

/** Returns the resource with the current address of its file: the port may have changed since the upload. */
export function withReachableUrl({ addresses }: KnowledgeBase, resource: Resource): Resource {
  return resource.url === null ? resource : { ...resource, url: addresses.reachable(resource.url) };
}
