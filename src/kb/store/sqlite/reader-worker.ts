import { parentPort } from "node:worker_threads";
import { answerCalls } from "../../../lib/worker-calls.ts";
import { answerMethods, type MethodCall } from "../methods.ts";
import { openReader, type Reader } from "./reader.ts";

/** The calls of the reader thread. The first one is `open`. */
export type ReaderMethods = Pick<Reader, "completeScopes" | "close"> & {
  open(path: string): void;
  /** Calls a method of the ports. */
  run(call: MethodCall): unknown;
};

if (parentPort === null) throw new Error("reader-worker.ts runs as a worker only");

const methods: Partial<ReaderMethods> = {
  open: (path: string) => {
    const reader = openReader(path);
    Object.assign(methods, { ...reader, run: answerMethods(reader) });
  },
};
// A method called before `open` is refused as unknown.
answerCalls(parentPort, methods);
