import {
  type McpServer,
  ProtocolError,
  ProtocolErrorCode,
  ResourceNotFoundError,
  type ListResourcesResult,
  type ReadResourceResult,
} from "@modelcontextprotocol/server";
import { z } from "zod";
import { codeOf, KbsyncError } from "../lib/failure.ts";
import type { ResourceRecord } from "../wire/resource.ts";
import { cutText, readFitting } from "./budget.ts";
import type { Caller, Reached } from "./caller.ts";
import { documentUri } from "./document-link.ts";
import { readPart, TEXT_CHARS_MAX } from "./fetch-tool.ts";
import type { KnownFiles } from "./known-files.ts";
import type { PageRequest } from "./service.ts";
import { listSources } from "./sources.ts";
import { errorText, withService } from "./tool-result.ts";

/** Most documents per page of the list. */
const DOCUMENTS_MAX = 50;
/** Most sources that one page covers; each takes two requests. */
const SOURCES_MAX = 25;
/** Longest title and description in the list. */
const SHORT_CHARS_MAX = 200;
/** All texts are sent as plain text: the service does not report which of them are Markdown. */
const TEXT_TYPE = "text/plain";
/** Error codes for a document that the key cannot see. */
const UNKNOWN: ReadonlySet<string> = new Set(["document_unknown", "document_deleted", "resource_not_found"]);

const TEMPLATE = {
  name: "document",
  title: "A document",
  uriTemplate: `${documentUri("")}{id}{?offset}`,
  description: `Text of a document by its id, up to ${TEXT_CHARS_MAX} characters from the offset on.`,
  mimeType: TEXT_TYPE,
};

/** Serves each document as a resource. The list has pages, and long texts have parts. */
export function addDocumentResources(
  { server }: McpServer,
  caller: Caller,
  onDefect: (error: unknown) => void,
): void {
  const serve = async <T>(
    uri: string | undefined,
    run: (reached: Reached, files: KnownFiles) => Promise<T>,
  ): Promise<T> => {
    try {
      return await withService(caller, run);
    } catch (error) {
      if (error instanceof ProtocolError) throw error;
      if (uri !== undefined && UNKNOWN.has(codeOf(error) ?? "")) throw new ResourceNotFoundError(uri);
      const code = codeOf(error) === "cursor_invalid" ? "InvalidParams" : "InternalError";
      throw new ProtocolError(ProtocolErrorCode[code], errorText(error, onDefect), undefined);
    }
  };
  server.registerCapabilities({ resources: {} });
  server.setRequestHandler("resources/templates/list", () => ({ resourceTemplates: [TEMPLATE] }));
  // The SDK's own list of resources has no pages.
  server.setRequestHandler("resources/list", ({ params }, { mcpReq: { signal } }) =>
    serve(undefined, async (reached, files): Promise<ListResourcesResult> => {
      const cursor = params?.cursor;
      const page = await readFitting(DOCUMENTS_MAX, (limit) =>
        listDocuments(reached, files, { limit, cursor }, signal),
      );
      return {
        resources: [...page.entries],
        ...(page.nextCursor !== null && { nextCursor: page.nextCursor }),
      };
    }),
  );
  server.setRequestHandler("resources/read", ({ params: { uri } }, { mcpReq: { signal } }) =>
    serve(uri, (reached, files) => readResource(reached, files, uri, signal)),
  );
}

/** A document in the list. */
type Listed = ListResourcesResult["resources"][number];

/** Position in the list: the page of sources that begins with a source, and the page of that source's documents. */
interface Position {
  readonly source?: string | undefined;
  readonly document?: string | undefined;
}

/** Lists documents source by source, without their texts. */
async function listDocuments(
  reached: Reached,
  files: KnownFiles,
  { limit, cursor }: PageRequest,
  signal: AbortSignal,
): Promise<{ readonly entries: readonly Listed[]; readonly nextCursor: string | null }> {
  const entries: Listed[] = [];
  let at: Position | undefined = readPosition(cursor);
  for (let sources = 0; sources < SOURCES_MAX && entries.length < limit && at !== undefined; sources++) {
    const page = await listSources(reached, files, { limit: 1, cursor: at.source }, signal);
    const [source] = page.sources;
    if (source === undefined) return { entries, nextCursor: null };
    const request = { limit: limit - entries.length, cursor: at.document };
    const { records, nextCursor } = await reached.service.records(
      source.collection_id,
      source.owner_id,
      request,
      signal,
    );
    entries.push(...records.map((record) => listed(record, files)));
    if (nextCursor !== null) at = { source: at.source, document: nextCursor };
    else at = page.nextCursor === null ? undefined : { source: page.nextCursor };
  }
  return { entries, nextCursor: at === undefined ? null : writePosition(at) };
}

function listed({ _id: id, title, description, updatedAt }: ResourceRecord, files: KnownFiles): Listed {
  const path = files.fileOf(id)?.path;
  return {
    uri: documentUri(id),
    name: cutText(path ?? (title || id), SHORT_CHARS_MAX),
    ...(title !== "" && { title: cutText(title, SHORT_CHARS_MAX) }),
    ...(description !== "" && { description: cutText(description, SHORT_CHARS_MAX) }),
    mimeType: TEXT_TYPE,
    ...(updatedAt !== undefined && { annotations: { lastModified: updatedAt } }),
  };
}

/** Reads a document, or its part from `?offset=` on. A cut text ends with the URI of the next part. */
async function readResource(
  reached: Reached,
  files: KnownFiles,
  uri: string,
  signal: AbortSignal,
): Promise<ReadResourceResult> {
  const prefix = documentUri("");
  const [, document, offset = "0"] =
    /^([A-Za-z0-9_-]{1,100})(?:\?offset=(\d{1,9}))?$/.exec(
      uri.startsWith(prefix) ? uri.slice(prefix.length) : "",
    ) ?? [];
  if (document === undefined) throw new ResourceNotFoundError(uri);
  const part = { document, offset: Number(offset), limit: TEXT_CHARS_MAX };
  const { record, text, nextOffset } = await readPart(reached, files, part, signal);
  const next = `${documentUri(record._id)}?offset=${nextOffset}`;
  const more = nextOffset === null ? "" : `\n\n[Cut here. ${next} is the next part.]`;
  return { contents: [{ uri, mimeType: TEXT_TYPE, text: text + more }] };
}

function writePosition({ source = "", document = "" }: Position): string {
  return Buffer.from(JSON.stringify([source, document])).toString("base64url");
}

function readPosition(cursor: string | undefined): Position {
  if (cursor === undefined) return {};
  try {
    const [source, document] = PositionText.parse(
      JSON.parse(Buffer.from(cursor, "base64url").toString("utf8")),
    );
    return { source: source || undefined, document: document || undefined };
  } catch (error) {
    throw new KbsyncError("the cursor is not from this list", {
      code: "cursor_invalid",
      hint: "Send the nextCursor of an earlier page, or none.",
      cause: error,
    });
  }
}

const PositionText = z.tuple([z.string().max(2000), z.string().max(2000)]);
