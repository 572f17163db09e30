import { parentPort } from "node:worker_threads";
import { lowerThreadPriority } from "../../lib/thread-priority.ts";
import { answerCalls } from "../../lib/worker-calls.ts";
import { CHUNK_METHODS } from "./chunk-methods.ts";

if (parentPort === null) throw new Error("chunk-worker.ts runs only as a worker thread");

// A search of another account goes before a large body.
lowerThreadPriority();

answerCalls(parentPort, CHUNK_METHODS);
