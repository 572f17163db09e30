import { parentPort, workerData } from "node:worker_threads";
import { answerCalls } from "../../../lib/worker-calls.ts";
import { openWriter, type Writer } from "./writer.ts";

/**
 * What the writing thread answers: `open` first, then everything a Writer does. `open` gives words on a store that it
 * brought up to date; undefined: there was nothing to do.
 */
export type WriterMethods = Writer & { open(nothing: undefined): string | undefined };

if (parentPort === null) throw new Error("writer-worker.ts runs as a worker only");

const methods: Partial<WriterMethods> = {
  // Opened by a call, so that a damaged file is the answer of that call and not the end of the thread.
  open: () => {
    let upgraded: string | undefined;
    const path = workerData as string; // given by open.ts alone
    Object.assign(methods, openWriter(path, { done: (words) => (upgraded = words) }));
    return upgraded;
  },
};
// A method called before `open` is refused as unknown.
answerCalls(parentPort, methods);
