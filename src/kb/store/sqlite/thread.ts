import { Worker } from "node:worker_threads";
import { codeOf, KbsyncError } from "../../../lib/failure.ts";
import { siblingModule } from "../../../lib/sibling.ts";
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
  const start = (): WorkerCalls<M> => {
    const thread = new Worker(siblingModule(import.meta.url, name), { workerData: path });
    const started = callWorker<M>(thread, `store ${name}`);
    thread.once("exit", (code) => {
      if (isClosed) return;
      problem = ended(new Error(`exit code ${code}`));
      onProblem?.(problem);
      timer = setTimeout(() => void restart(), restartMs);
    });
    return started;
  };
  const restart = async (): Promise<void> => {
    calls = start();
    try {
      await calls.call("open", undefined);
      problem = undefined;
    } catch {
      // The exit event starts the next thread.
      await calls.terminate();
    }
  };
  let calls = start();

  return {
    problem: () => problem,
    call: (method, argument, transfer) =>
      problem === undefined
        ? calls.call(method, argument, transfer).catch((error: unknown) => {
            throw codeOf(error) === "worker_gone" ? ended(error) : error;
          })
        : Promise.reject(problem),
    terminate: async () => {
      isClosed = true;
      clearTimeout(timer);
      await calls.terminate();
    },
  };
}
