import { parentPort } from "node:worker_threads";
import { answerCalls } from "../../lib/worker-calls.ts";
import type { Settings } from "../../wire/primitives.ts";
import { chunkRecursive } from "./chunk/recursive.ts";
import type { Span } from "./chunk/span.ts";

/** What the chunking worker answers. */
export interface ChunkMethods extends Record<string, (argument: never) => unknown> {
  chunk: (argument: { readonly text: string; readonly settings: Settings }) => readonly Span[];
}

if (parentPort === null) throw new Error("chunk-worker.ts runs only as a worker thread");

answerCalls(parentPort, {
  chunk: ({ text, settings }) => chunkRecursive(text, settings),
} satisfies ChunkMethods);
