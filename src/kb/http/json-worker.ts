import { parentPort } from "node:worker_threads";
import { answerCalls } from "../../lib/worker-calls.ts";
import { parseJsonBody } from "./json-body.ts";

/** What the worker for large bodies answers. */
export interface JsonMethods extends Record<string, (argument: never) => unknown> {
  parse: (bytes: Uint8Array) => unknown;
}

if (parentPort === null) throw new Error("json-worker.ts runs only as a worker thread");

answerCalls(parentPort, {
  parse: (bytes: Uint8Array) => parseJsonBody(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)),
} satisfies JsonMethods);
