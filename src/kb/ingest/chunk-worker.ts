import { parentPort } from "node:worker_threads";
import { answerCalls } from "../../lib/worker-calls.ts";
import { CHUNK_METHODS } from "./chunk-methods.ts";

if (parentPort === null) throw new Error("chunk-worker.ts runs only as a worker thread");

answerCalls(parentPort, CHUNK_METHODS);
