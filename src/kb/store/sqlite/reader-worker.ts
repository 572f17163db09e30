import { parentPort, workerData } from "node:worker_threads";
import { answerCalls } from "../../../lib/worker-calls.ts";
import { openSearcher, type Searcher } from "./searcher.ts";

/** What the reading thread answers: `open` first, then everything a Searcher does. */
export type ReaderMethods = Searcher & { open(nothing: undefined): void };

if (parentPort === null) throw new Error("reader-worker.ts runs as a worker only");

const methods: Partial<ReaderMethods> = {
  open: () => {
    Object.assign(methods, openSearcher(workerData as string)); // the path, given by open.ts alone
  },
};
// A method called before `open` is refused as unknown.
answerCalls(parentPort, methods);
