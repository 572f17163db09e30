import { openGate } from "../../../lib/gate.ts";
import { lazyWorker } from "../../../lib/lazy-worker.ts";
import { entryUrl } from "../../../lib/package.ts";
import { Refusal } from "../../resources/refusal.ts";
import { parseHashedBody, parseJsonBody, type HashedJson } from "./json-body.ts";
import type { JsonMethods } from "./json-worker.ts";

/** Bodies up to this size are parsed on the event loop, in a few milliseconds; one of 32 MB takes 400. */
const INLINE_BYTES_MAX = 1024 * 1024;
/** Bodies at the worker: one is parsed, and the next is there when it ends. Their values come back one by one. */
const WIDTH = 2;
/** Bodies that may wait: more than all requests and lines in flight make together. */
const LINE_MAX = 16_384;

/** Parses JSON bodies without blocking the event loop for long. Accounts take turns at the worker for large bodies. */
export interface JsonReader {
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
