import { parentPort, workerData } from "node:worker_threads";
import { answerCalls } from "../../../lib/worker-calls.ts";
import { openWriter, type Writer } from "./writer.ts";

/**
 * The calls of the writer thread: first `open`, then the methods of a Writer. `open` returns a message for the log if it
 * upgraded the store.
 */
export type WriterMethods = Writer & { open(nothing: undefined): string | undefined };

if (parentPort === null) throw new Error("writer-worker.ts runs as a worker only");

const methods: Partial<WriterMethods> = {
  // Opened by a call, so that a damaged file fails that call instead of ending the thread.
  open: () => {
    let upgraded: string | undefined;
    const path = workerData as string; // open.ts starts this worker
    Object.assign(methods, openWriter(path, { done: (message) => (upgraded = message) }));
    return upgraded;
  },
};
// A method called before `open` is refused as unknown.
answerCalls(parentPort, methods);
