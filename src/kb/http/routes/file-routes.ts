import { open } from "node:fs/promises";
import type { FileHandle } from "node:fs/promises";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { ROUTES } from "../../../wire/routes.ts";
import { codeOf } from "../../../lib/failure.ts";
import { Refusal } from "../../resources/refusal.ts";
import type { StoredFile } from "../../store/files.ts";
import type { FileStore } from "../../uploads/file-store.ts";
import { requireKey, routeConfig } from "../operation/operation.ts";
import type { HttpParts } from "../operation/operation.ts";
import type { RouteDoc } from "../operation/route-table.ts";

/** Types that a browser may show inline: those it renders without running any script. */
const INLINE_TYPE = /^image\/|^application\/pdf$/;

const DOC: RouteDoc = {
  summary: "Serves an uploaded file; ranges and ETag work.",
  tag: "Files",
  headers: {
    range: "Range of bytes of the file.",
    "if-none-match": "Known ETags; 304 if the current one is among them.",
  },
  answers: { 200: "file", 206: "file", 304: "empty" },
};

/** Serves uploaded files to anyone who knows their address, or, if so configured, only to keys of their account. */
export function addFileRoutes(server: FastifyInstance, parts: HttpParts): void {
  server.get(
    `${ROUTES.files}/:token/:name`,
    parts.filesNeedKey
      ? { onRequest: requireKey(parts, "read"), config: routeConfig("read", DOC) }
      : { config: routeConfig("none", DOC) },
    async (request, reply) => {
      const file = await findFile(parts, request);
      return sendFile(request, reply, file, parts.kb.files);
    },
  );
}

async function findFile({ kb }: HttpParts, request: FastifyRequest): Promise<StoredFile> {
  const { token, name } = request.params as { token: string; name: string }; // the route's two parameters
  const file = await kb.records.file(token);
  const mayRead = request.caller === null || request.caller.accountId === file?.accountId;
  if (file !== undefined && file.name === name && mayRead) return file;
  throw noFile();
}

async function sendFile(
  request: FastifyRequest,
  reply: FastifyReply,
  file: StoredFile,
  files: Pick<FileStore, "use">,
): Promise<FastifyReply> {
  const etag = `"${file.sha256}"`;
  if (matches(request.headers["if-none-match"], etag)) {
    return reply.headers(fileHeaders(file, etag)).code(304).send();
  }
  const ifRange = request.headers["if-range"];
  const header = ifRange === undefined || ifRange === etag ? request.headers.range : undefined;
  const range = request.method === "GET" ? readRange(header, file.sizeBytes) : "whole";
  if (range === "unsatisfiable") {
    reply.header("content-range", `bytes */${file.sizeBytes}`);
    throw new Refusal(
      "range_not_satisfiable",
      `The file has ${file.sizeBytes} bytes, none of them in this range.`,
    );
  }
  const { first, last } = range === "whole" ? { first: 0, last: file.sizeBytes - 1 } : range;
  // Opened before the head is sent: a missing file is a 404, not an interrupted answer.
  const handle = await openFile(files, file);
  const type =
    file.mediaType === "text/plain" ? `text/plain; charset=${await charsetOf(handle)}` : file.mediaType;
  reply
    .headers(fileHeaders(file, etag))
    .header("content-type", type)
    .header("content-length", last - first + 1);
  if (range !== "whole") reply.code(206).header("content-range", `bytes ${first}-${last}/${file.sizeBytes}`);
  // For HEAD, Fastify destroys the stream, which closes the handle.
  return reply.send(handle.createReadStream({ start: first, end: last }));
}

async function openFile(files: Pick<FileStore, "use">, file: StoredFile): Promise<FileHandle> {
  try {
    return await files.use(file, (path) => open(path, "r"));
  } catch (error) {
    if (codeOf(error) === "ENOENT") throw noFile();
    throw error;
  }
}

/** Detects the charset of a text file: UTF-16 with a byte-order mark, else UTF-8. Closes the handle if it throws. */
async function charsetOf(handle: FileHandle): Promise<"utf-8" | "utf-16"> {
  const mark = Buffer.alloc(2);
  try {
    await handle.read(mark, 0, 2, 0);
  } catch (error) {
    await handle.close();
    throw error;
  }
  const first = mark.readUInt16BE();
  return first === 0xfffe || first === 0xfeff ? "utf-16" : "utf-8";
}

function noFile(): Refusal {
  return new Refusal("file_not_found", "There is no file at this address.");
}

function fileHeaders(file: StoredFile, etag: string): Record<string, string> {
  return {
    etag,
    "accept-ranges": "bytes",
    // The bytes of a token never change. Private, because the address is a secret that proxies should not store.
    "cache-control": "private, max-age=3600",
    "content-disposition": disposition(file),
    "x-content-type-options": "nosniff",
    "content-security-policy": "sandbox; default-src 'none'",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
  };
}

function matches(header: string | undefined, etag: string): boolean {
  if (header === undefined) return false;
  return header.split(",").some((given) => given.trim() === "*" || given.trim().replace(/^W\//, "") === etag);
}

/** RFC 6266: an ASCII name for old clients, and the real name in UTF-8. */
function disposition({ name, mediaType }: StoredFile): string {
  const kind = INLINE_TYPE.test(mediaType) ? "inline" : "attachment";
  const plain = name.replaceAll(/[^\x20-\x7e]|["\\%]/g, "_");
  const encoded = encodeURIComponent(name).replaceAll(/['()*]/g, (c) => `%${c.charCodeAt(0).toString(16)}`);
  return `${kind}; filename="${plain}"; filename*=UTF-8''${encoded}`;
}

/** A range of bytes, both ends inclusive. */
interface ByteRange {
  readonly first: number;
  readonly last: number;
}

/**
 * Reads a `Range` header for a file of `sizeBytes` (RFC 9110, 14.2). `whole`: there is no header, or it is malformed or
 * has several ranges, all of which may be ignored. `unsatisfiable`: the file has no byte of the range.
 */
function readRange(header: string | undefined, sizeBytes: number): ByteRange | "whole" | "unsatisfiable" {
  const match = header === undefined ? null : /^bytes=(\d{0,15})-(\d{0,15})$/i.exec(header.trim());
  if (match === null) return "whole";
  const [, from = "", to = ""] = match;
  if (from === "" && to === "") return "whole";
  if (from === "") {
    const length = Number(to);
    if (length === 0) return "unsatisfiable";
    return { first: Math.max(0, sizeBytes - length), last: sizeBytes - 1 };
  }
  const first = Number(from);
  const last = to === "" ? sizeBytes - 1 : Math.min(Number(to), sizeBytes - 1);
  if (to !== "" && Number(to) < first) return "whole";
  return first < sizeBytes ? { first, last } : "unsatisfiable";
}
