import { parentPort } from "node:worker_threads";
import { answerCalls } from "../../src/lib/worker-calls.ts";

/** What the worker of the test answers. */
export interface NestingMethods extends Record<string, (argument: never) => unknown> {
  /** An array in an array, `depth` times: whoever has a smaller stack cannot read it. */
  nested: (depth: number) => unknown;
  same: (value: unknown) => unknown;
  /** What Node does on a call that this thread cannot read; a stack small enough for a real one starts no thread. */
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
