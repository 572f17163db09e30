import { parentPort } from "node:worker_threads";
import { answerCalls } from "../../src/lib/worker-calls.ts";

/** Methods of the test's worker. */
export interface NestingMethods extends Record<string, (argument: never) => unknown> {
  /** Returns arrays nested `depth` times, which a thread with a smaller stack cannot read. */
  nested: (depth: number) => unknown;
  same: (value: unknown) => unknown;
  /** Does what Node does on an unreadable call; a thread with a stack small enough for a real one does not start. */
  unreadable: () => Promise<void>;
  never: () => Promise<void>;
}

const port = parentPort;
if (port === null) throw new Error("nesting-worker.ts runs only as a worker thread");

answerCalls(port, {
  nested: (depth: number) => JSON.parse("[".repeat(depth) + "]".repeat(depth)),
  same: (value: unknown) => value,
  unreadable: () => {
    port.emit("messageerror", new Error("cannot be read"));
    return new Promise(() => {});
  },
  never: () => new Promise(() => {}),
} satisfies NestingMethods);
