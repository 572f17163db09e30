import { Worker } from "node:worker_threads";
import { callWorker } from "./worker-calls.ts";
import type { Methods, WorkerCalls } from "./worker-calls.ts";

/** A worker thread that starts with its first call, and again after it ended. */
export interface LazyWorker<M extends Methods> {
  call: WorkerCalls<M>["call"];
  /** Ends the worker if it runs; calls under way fail with code `worker_gone`. */
  close(): Promise<void>;
}

/**
 * Makes a worker of a module that calls `answerCalls`. It does not keep the process alive: a call under way is awaited
 * by something that does.
 */
export function lazyWorker<M extends Methods>(module: URL, name: string): LazyWorker<M> {
  let running: WorkerCalls<M> | undefined;

  const start = (): WorkerCalls<M> => {
    const thread = new Worker(module, { name });
    thread.unref();
    const calls = callWorker<M>(thread, name);
    thread.once("exit", () => {
      if (running === calls) running = undefined;
    });
    return calls;
  };

  return {
    call: (method, argument, transfer) => (running ??= start()).call(method, argument, transfer),
    close: async () => {
      await running?.terminate();
    },
  };
}
