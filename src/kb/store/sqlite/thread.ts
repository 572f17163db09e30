import type { Worker } from "node:worker_threads";
import { codeOf, KbsyncError } from "../../../lib/failure.ts";
import { endThread, takeThread } from "../../../lib/idle-threads.ts";
import { entryUrl } from "../../../lib/package.ts";
import { callWorker, type WorkerCalls } from "../../../lib/worker-calls.ts";
import type { ReaderMethods } from "./reader-worker.ts";
import type { WriterMethods } from "./writer-worker.ts";

/** Wait before a thread that ended is restarted, so that one that ends at every start does not use up a processor. */
const RESTART_MS = 1000;

/**
 * A thread that works on the store file. If it ends, pending calls fail, as do calls before it runs again (code
 * `store_busy`). It restarts automatically until `terminate`.
 */
export interface StoreThread<M extends ReaderMethods | WriterMethods> extends Pick<WorkerCalls<M>, "call"> {
  /** Why the thread takes no calls at present; undefined: it takes calls, or was never opened. */
  problem(): KbsyncError | undefined;
  /** Closes the store in the thread, unless the thread is gone, and ends the thread. If that fails, `terminate` it. */
  close(): Promise<void>;
  /** Ends a thread that was not closed. */
  terminate(): Promise<void>;
}

export interface StoreThreadOptions {
  /** Wait before a thread that ended is restarted. Default: a second. */
  readonly restartMs?: number;
  /** Called when a thread ends without `terminate`. */
  readonly onProblem?: (problem: KbsyncError) => void;
}

/** Starts the thread. The caller's first call must be `open`. */
export function startStoreThread<M extends ReaderMethods | WriterMethods>(
  name: "reader-worker" | "writer-worker",
  path: string,
  { restartMs = RESTART_MS, onProblem }: StoreThreadOptions,
): StoreThread<M> {
  const module = entryUrl(`kb/store/sqlite/${name}`);
  let isClosed = false;
  let problem: KbsyncError | undefined;
  let timer: NodeJS.Timeout | undefined;

  const ended = (cause: unknown): KbsyncError =>
    new KbsyncError(`the store's ${name} ended and is being restarted`, {
      code: "store_busy",
      subject: path,
      retryable: true,
      cause,
    });
  const start = (): { thread: Worker; calls: WorkerCalls<M> } => {
    const thread = takeThread(module, {});
    const calls = callWorker<M>(thread, `store ${name}`);
    thread.once("exit", (code) => {
      if (isClosed) return;
      problem = ended(new Error(`exit code ${code}`));
      onProblem?.(problem);
      timer = setTimeout(() => void restart(), restartMs);
    });
    return { thread, calls };
  };
  const restart = async (): Promise<void> => {
    current = start();
    try {
      await current.calls.call("open", path);
      problem = undefined;
    } catch {
      // The exit event starts the next thread.
      await current.calls.terminate();
    }
  };
  let current = start();

  const call: StoreThread<M>["call"] = (method, argument, transfer) => {
    // A closed store's thread may have its next user.
    const refusal = isClosed ? ended(new Error("the store was closed")) : problem;
    return refusal === undefined
      ? current.calls.call(method, argument, transfer).catch((error: unknown) => {
          throw codeOf(error) === "worker_gone" ? ended(error) : error;
        })
      : Promise.reject(refusal);
  };
  const terminate = async (): Promise<void> => {
    if (isClosed) return;
    isClosed = true;
    clearTimeout(timer);
    await current.calls.terminate();
  };

  return {
    problem: () => problem,
    call,
    close: async () => {
      if (problem === undefined) await call("close", undefined);
      // A call that still runs would answer the thread's next user.
      if (problem !== undefined || current.calls.pending() > 0) return terminate();
      isClosed = true;
      await endThread(current.thread, module);
    },
    terminate,
  };
}
