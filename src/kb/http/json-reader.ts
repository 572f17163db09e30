import { lazyWorker } from "../../lib/lazy-worker.ts";
import { siblingModule } from "../../lib/sibling.ts";
import { parseHashedBody, parseJsonBody, type HashedJson } from "./json-body.ts";
import type { JsonMethods } from "./json-worker.ts";

/** Bodies up to this size are parsed on the event loop, in a few milliseconds; one of 32 MB takes 400. */
const INLINE_BYTES_MAX = 1024 * 1024;

/** Parses JSON bodies without blocking the event loop for long. */
export interface JsonReader {
  /** Like `parseJsonBody`. Takes ownership of the bytes: a large body is transferred to the worker, not copied. */
  parse(bytes: Buffer): Promise<unknown>;
  /** Also returns the SHA-256 of the bytes, which takes as long for 40 MB as parsing a few. */
  parseHashed(bytes: Buffer): Promise<HashedJson>;
  close(): Promise<void>;
}

/** Opens the reader. Its worker starts with the first large body. */
export function openJsonReader(): JsonReader {
  const worker = lazyWorker<JsonMethods>(siblingModule(import.meta.url, "json-worker"), "JSON");
  return {
    parse: async (bytes) => {
      if (bytes.length <= INLINE_BYTES_MAX) return parseJsonBody(bytes);
      // A buffer of this size is the only one in its memory: pooled buffers have at most 4 KB.
      return worker.call("parse", bytes, [bytes.buffer as ArrayBuffer]);
    },
    parseHashed: async (bytes) =>
      bytes.length <= INLINE_BYTES_MAX
        ? parseHashedBody(bytes)
        : worker.call("parseHashed", bytes, [bytes.buffer as ArrayBuffer]),
    close: () => worker.close(),
  };
}
