import type { IncomingMessage } from "node:http";
import type { Readable } from "node:stream";
import { errorCodes, type FastifyInstance, type FastifyRequest } from "fastify";
import { bytesOf } from "../../../lib/byte-block.ts";
import { within } from "../../../lib/deadline.ts";
import { IDEMPOTENCY_HEADER } from "../../../wire/routes.ts";
import { Refusal } from "../../resources/refusal.ts";
import { openJsonReader } from "./json-reader.ts";
import { workOn } from "../limits/in-flight.ts";

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
