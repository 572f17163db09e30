import { Worker } from "node:worker_threads";
import { callWorker } from "./worker-calls.ts";
import type { Methods, WorkerCalls } from "./worker-calls.ts";

/** A worker thread that starts on its first call, and again after it has ended. */
export interface LazyWorker<M extends Methods> {
  call: WorkerCalls<M>["call"];
  /** Terminates the worker if it runs; calls in flight fail with `worker_gone`. */
  close(): Promise<void>;
}

/**
 * Creates a worker from a module that calls `answerCalls`. The worker does not keep the process alive; the caller that
 * awaits a call has to.
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
