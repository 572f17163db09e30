import { parentPort, workerData } from "node:worker_threads";
import { answerCalls } from "../../../lib/worker-calls.ts";
import { openWriter, type Writer } from "./writer.ts";

/** What the writing thread answers: `open` first, then everything a Writer does. */
export type WriterMethods = Writer & { open(nothing: undefined): void };

if (parentPort === null) throw new Error("writer-worker.ts runs as a worker only");

const methods: Partial<WriterMethods> = {
  // Opened by a call, so that a damaged file is the answer of that call and not the end of the thread.
  open: () => {
    Object.assign(methods, openWriter(workerData as string)); // the path, given by open.ts alone
  },
};
// A method called before `open` is refused as unknown.
answerCalls(parentPort, methods);
