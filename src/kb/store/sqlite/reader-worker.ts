import { parentPort, workerData } from "node:worker_threads";
import { answerCalls } from "../../../lib/worker-calls.ts";
import { openSearcher, type Searcher } from "./searcher.ts";

/** The calls of the reader thread: first `open`, then the methods of a Searcher. */
export type ReaderMethods = Searcher & { open(nothing: undefined): void };

if (parentPort === null) throw new Error("reader-worker.ts runs as a worker only");

const methods: Partial<ReaderMethods> = {
  open: () => {
    Object.assign(methods, openSearcher(workerData as string)); // the path; open.ts starts this worker
  },
};
// A method called before `open` is refused as unknown.
answerCalls(parentPort, methods);
