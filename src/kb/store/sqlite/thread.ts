import { Worker } from "node:worker_threads";
import { codeOf, KbsyncError } from "../../../lib/failure.ts";
import { siblingModule } from "../../../lib/sibling.ts";
import { callWorker, type WorkerCalls } from "../../../lib/worker-calls.ts";
import type { ReaderMethods } from "./reader-worker.ts";
import type { WriterMethods } from "./writer-worker.ts";

/** Wait before a thread that ended is started again: one that ends at every start must not take a processor. */
const RESTART_MS = 1000;

/**
 * A thread that works on the store file. Where it ends, calls without an answer fail, as do those that come before it runs
 * again (code `store_busy`), and it is started again by itself until `terminate`.
 */
export interface StoreThread<M extends ReaderMethods | WriterMethods> extends Pick<WorkerCalls<M>, "call"> {
  /** Why the thread takes no calls at present; undefined: it does, or was never opened. */
  problem(): KbsyncError | undefined;
  terminate(): Promise<void>;
}

export interface StoreThreadOptions {
  /** Wait before a thread that ended is started again. Default: a second. */
  readonly restartMs?: number;
  /** Called when a thread ended that nobody closed. */
  readonly onProblem?: (problem: KbsyncError) => void;
}

/** Starts the thread; the caller makes its first call, `open`. */
export function startStoreThread<M extends ReaderMethods | WriterMethods>(
  name: "reader-worker" | "writer-worker",
  path: string,
  { restartMs = RESTART_MS, onProblem }: StoreThreadOptions,
): StoreThread<M> {
  let isClosed = false;
  let problem: KbsyncError | undefined;
  let restart: NodeJS.Timeout | undefined;

  const gone = (cause: unknown): KbsyncError =>
    new KbsyncError(`the store's ${name} ended and is being started again`, {
      code: "store_busy",
      subject: path,
      retryable: true,
      cause,
    });
  const start = (): WorkerCalls<M> => {
    const thread = new Worker(siblingModule(import.meta.url, name), { workerData: path });
    const started = callWorker<M>(thread, `store ${name}`);
    thread.once("exit", (code) => {
      if (isClosed) return;
      problem = gone(new Error(`exit code ${code}`));
      onProblem?.(problem);
      restart = setTimeout(() => void again(), restartMs);
    });
    return started;
  };
  const again = async (): Promise<void> => {
    calls = start();
    try {
      await calls.call("open", undefined);
      problem = undefined;
    } catch {
      // Its end starts the next one.
      await calls.terminate();
    }
  };
  let calls = start();

  return {
    problem: () => problem,
    call: (method, argument, transfer) =>
      problem === undefined
        ? calls.call(method, argument, transfer).catch((error: unknown) => {
            throw codeOf(error) === "worker_gone" ? gone(error) : error;
          })
        : Promise.reject(problem),
    terminate: async () => {
      isClosed = true;
      clearTimeout(restart);
      await calls.terminate();
    },
  };
}
