import { parentPort } from "node:worker_threads";
import { lowerThreadPriority } from "../../../lib/thread-priority.ts";
import { answerCalls } from "../../../lib/worker-calls.ts";
import { parseHashedBody, parseJsonBody, type HashedJson } from "./json-body.ts";

/** The calls of the worker for large bodies. */
export interface JsonMethods extends Record<string, (argument: never) => unknown> {
  parse: (bytes: Uint8Array) => unknown;
  parseHashed: (bytes: Uint8Array) => HashedJson;
}

if (parentPort === null) throw new Error("json-worker.ts runs only as a worker thread");

// A search of another account goes before a large body.
lowerThreadPriority();

answerCalls(parentPort, {
  parse: (bytes: Uint8Array) => parseJsonBody(bufferOf(bytes)),
  parseHashed: (bytes: Uint8Array) => parseHashedBody(bufferOf(bytes)),
} satisfies JsonMethods);

/** Wraps the plain bytes of a message in a Buffer of the same memory. */
function bufferOf({ buffer, byteOffset, byteLength }: Uint8Array): Buffer {
  return Buffer.from(buffer, byteOffset, byteLength);
}
