import { lazyWorker } from "../../lib/lazy-worker.ts";
import { siblingModule } from "../../lib/sibling.ts";
import { parseHashedBody, parseJsonBody, type HashedJson } from "./json-body.ts";
import type { JsonMethods } from "./json-worker.ts";

/** Bodies up to this long are parsed in place, in a few milliseconds; one of 32 MB takes 400. */
const INLINE_BYTES_MAX = 1024 * 1024;

/** Parses JSON bodies without ever holding up the event loop for long. */
export interface JsonReader {
  /** Like `parseJsonBody`. Takes the bytes over: a large body is moved to the worker, not copied. */
  parse(bytes: Buffer): Promise<unknown>;
  /** The same, and the SHA-256 of the bytes: of 40 MB that alone takes as long as parsing a few. */
  parseHashed(bytes: Buffer): Promise<HashedJson>;
  close(): Promise<void>;
}

/** Opens the reader. Its worker starts with the first large body. */
export function openJsonReader(): JsonReader {
  const worker = lazyWorker<JsonMethods>(siblingModule(import.meta.url, "json-worker"), "JSON");
  return {
    parse: async (bytes) => {
      if (bytes.length <= INLINE_BYTES_MAX) return parseJsonBody(bytes);
      // A buffer of this size has its memory to itself, as no pooled one is larger than 4 KB.
      return worker.call("parse", bytes, [bytes.buffer as ArrayBuffer]);
    },
    parseHashed: async (bytes) =>
      bytes.length <= INLINE_BYTES_MAX
        ? parseHashedBody(bytes)
        : worker.call("parseHashed", bytes, [bytes.buffer as ArrayBuffer]),
    close: () => worker.close(),
  };
}
