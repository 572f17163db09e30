import type { IncomingMessage } from "node:http";
import type { Readable } from "node:stream";
import { errorCodes, type FastifyInstance, type FastifyRequest } from "fastify";
import { bytesOf } from "../../../lib/byte-block.ts";
import { within } from "../../../lib/deadline.ts";
import { IDEMPOTENCY_HEADER } from "../../../wire/routes.ts";
import { Refusal } from "../../resources/refusal.ts";
import { workOn } from "../limits/in-flight.ts";
import { openGate } from "../../../lib/gate.ts";
import { lazyWorker } from "../../../lib/lazy-worker.ts";
import { entryUrl } from "../../../lib/package.ts";
import { parseHashedBody, parseJsonBody, type HashedJson } from "./json-body.ts";
import type { JsonMethods } from "./json-worker.ts";

/** Maximum time for a small body to arrive. */
const SHORT_BODY_MS = 30_000;
/** Maximum body of operations with a small one or none. */
export const SMALL_BODY_BYTES = 128 * 1024;

/** Replaces Fastify's parsers by one for JSON. */
export function replaceJsonParser(server: FastifyInstance): void {
  const reader = openJsonReader();
  server.addHook("onClose", () => reader.close());
  server.removeAllContentTypeParsers();
  server.addContentTypeParser(
    "application/json",
    async (request: FastifyRequest, payload: IncomingMessage) => {
      const bytes = await jsonBytes(request, payload);
      const account = request.caller?.accountId ?? "";
      if (request.headers[IDEMPOTENCY_HEADER] === undefined)
        return workOn(request, () => reader.parse(bytes, account));
      const { value, sha256 } = await workOn(request, () => reader.parseHashed(bytes, account));
      request.bodySha256 = sha256;
      return value;
    },
  );
}

/**
 * Reads the body into one buffer; Fastify would hold every piece. Its memory is counted as it arrives. A small body must
 * arrive within SHORT_BODY_MS; a long one has the time of a request.
 */
async function jsonBytes(request: FastifyRequest, payload: Readable): Promise<Buffer> {
  const { headers, routeOptions, inFlight } = request;
  const limit = routeOptions.bodyLimit ?? SMALL_BODY_BYTES;
  const length = headers["content-length"];
  const declared = length === undefined ? limit : Number(length);
  if (declared > limit) throw new errorCodes.FST_ERR_CTP_BODY_TOO_LARGE();
  const read = bytesOf(payload, limit, declared, (bytes) => inFlight?.hold(bytes)).catch((cause: unknown) => {
    if (cause instanceof Refusal) throw cause;
    throw new Refusal("invalid_body", "The client interrupted the body.", { cause });
  });
  const bytes = await (limit > SMALL_BODY_BYTES ? read : within(read, SHORT_BODY_MS, lateBody));
  if (bytes === undefined) throw new errorCodes.FST_ERR_CTP_BODY_TOO_LARGE();
  return bytes;
}

function lateBody(): Refusal {
  return new Refusal("request_timeout", `The body did not arrive within ${SHORT_BODY_MS / 1000} s.`);
}

/** Bodies up to this size are parsed on the event loop, in a few milliseconds; one of 32 MB takes 400. */
const INLINE_BYTES_MAX = 1024 * 1024;
/** Bodies at the worker: one is parsed, and the next is there when it ends. Their values come back one by one. */
const WIDTH = 2;
/** Bodies that may wait: more than all requests and lines in flight make together. */
const LINE_MAX = 16_384;

/** Parses JSON bodies without blocking the event loop for long. Accounts take turns at the worker for large bodies. */
interface JsonReader {
  /** Like `parseJsonBody`. Takes ownership of the bytes: a large body is transferred to the worker, not copied. */
  parse(bytes: Buffer, account: string): Promise<unknown>;
  /** Also returns the SHA-256 of the bytes, which takes as long for 40 MB as parsing a few. */
  parseHashed(bytes: Buffer, account: string): Promise<HashedJson>;
  close(): Promise<void>;
}

/** Opens the reader. Its worker starts with the first large body. */
export function openJsonReader(): JsonReader {
  const worker = lazyWorker<JsonMethods>(entryUrl("kb/http/body/json-worker"), "JSON");
  const gate = openGate({
    width: WIDTH,
    lineMax: LINE_MAX,
    full: () => new Refusal("overloaded", `More than ${LINE_MAX} bodies wait to be parsed.`),
  });
  return {
    parse: async (bytes, account) =>
      bytes.length <= INLINE_BYTES_MAX
        ? parseJsonBody(bytes)
        : gate.run(() => worker.call("parse", bytes, memoryOf(bytes)), { path: [account] }),
    parseHashed: async (bytes, account) =>
      bytes.length <= INLINE_BYTES_MAX
        ? parseHashedBody(bytes)
        : gate.run(() => worker.call("parseHashed", bytes, memoryOf(bytes)), { path: [account] }),
    close: () => worker.close(),
  };
}

/** Returns the memory of a large buffer, which holds nothing else: pooled buffers have at most 4 KB. */
function memoryOf(bytes: Buffer): ArrayBuffer[] {
  return [bytes.buffer as ArrayBuffer];
}
