import type { DeletedResource, LiveResource } from "../../../wire/answers.ts";
import type { Listing } from "../../resources/list.ts";
import type { ChunkList } from "../../resources/read.ts";
import { wholeRecord } from "../../resources/record.ts";

/** Size of the pieces written to the socket: small enough to keep memory flat, large enough to keep writes few. */
export const PART_CHARS = 64 * 1024;

/** Yields the answer of a list in pieces: a list may be too large to hold in memory, or to write in one go. */
export async function* listText(listing: Listing): AsyncGenerator<string> {
  let text = '{"success":true,"message":"Resources fetched successfully","data":{"resources":[';
  let separator = "";
  for await (const resource of listing.resources) {
    text += separator;
    separator = ",";
    for (const piece of contentLastText(wholeRecord(resource))) {
      text += piece;
      if (text.length < PART_CHARS) continue;
      yield text;
      text = "";
    }
  }
  const next = listing.paginated ? `,"nextCursor":${JSON.stringify(listing.nextCursor())}` : "";
  yield `${text}],"created":0${next}}}`;
}

/** Yields the answer of one record in pieces. */
export function* oneText(message: string, record: LiveResource | DeletedResource): Generator<string> {
  yield `{"success":true,"message":${JSON.stringify(message)},"data":`;
  yield* contentLastText(record);
  yield "}";
}

/** Yields the answer of a document's chunks in pieces: a long document has tens of thousands. */
export function* chunksText(message: string, { chunks, ...rest }: ChunkList): Generator<string> {
  let text = `{"success":true,"message":${JSON.stringify(message)},"data":${JSON.stringify(rest).slice(0, -1)},"chunks":[`;
  let separator = "";
  for (const chunk of chunks) {
    text += separator;
    separator = ",";
    for (const piece of contentLastText(chunk)) {
      text += piece;
      if (text.length < PART_CHARS) continue;
      yield text;
      text = "";
    }
  }
  yield `${text}]}}`;
}

/** Yields a record as JSON, with long content in pieces: serialising 32 MB at once would block all other requests. */
function* contentLastText({ content, ...rest }: { readonly content: string }): Generator<string> {
  if (content.length <= PART_CHARS) {
    yield JSON.stringify({ ...rest, content });
    return;
  }
  yield `${JSON.stringify(rest).slice(0, -1)},"content":"`;
  for (let from = 0; from < content.length;) {
    const to = wholeCharacterBefore(content, from + PART_CHARS);
    yield JSON.stringify(content.slice(from, to)).slice(1, -1);
    from = to;
  }
  yield '"}';
}

/** Returns `at`, or one less if it would split a surrogate pair, whose halves JSON would escape. */
function wholeCharacterBefore(text: string, at: number): number {
  const code = text.charCodeAt(at - 1);
  return at < text.length && code >= 0xd800 && code <= 0xdbff ? at - 1 : at;
}
