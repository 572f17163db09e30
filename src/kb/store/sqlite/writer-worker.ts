import { parentPort } from "node:worker_threads";
import { lowerThreadPriority } from "../../../lib/thread-priority.ts";
import { answerCalls } from "../../../lib/worker-calls.ts";
import { answerMethods, type MethodCall } from "../methods.ts";
import { openWriter, type Writer } from "./writer.ts";

/** The calls of the writer thread. The first one is `open`; it returns a message for the log if it upgraded the store. */
export type WriterMethods = Pick<Writer, "serve" | "scrub" | "rebuild" | "close"> & {
  open(path: string): string | undefined;
  /** Calls a method of the ports. */
  run(call: MethodCall): unknown;
};

if (parentPort === null) throw new Error("writer-worker.ts runs as a worker only");

// A search of another account goes before a large body.
lowerThreadPriority();

const methods: Partial<WriterMethods> = {
  // Opened by a call, so that a damaged file fails that call instead of ending the thread.
  open: (path: string) => {
    let upgraded: string | undefined;
    const writer = openWriter(path, { done: (message) => (upgraded = message) });
    Object.assign(methods, { ...writer, run: answerMethods(writer) });
    return upgraded;
  },
};
// A method called before `open` is refused as unknown.
answerCalls(parentPort, methods);
