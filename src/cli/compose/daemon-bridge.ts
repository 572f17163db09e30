import { KbsyncError } from "../../lib/failure.ts";
import type { DaemonOperations, OperationContext } from "../../sync/daemon/control/operations.ts";
import { DAEMON_API, type DaemonOperation, restarts } from "../../wire/daemon.ts";

/** The operations of whichever daemon runs now: a new one replaces it when the configuration is read again. */
export interface DaemonBridge {
  /** They throw `daemon_stopping` while no daemon runs. */
  readonly operations: DaemonOperations;
  /** Aborts when the program ends. */
  readonly stopping: AbortSignal;
  /** Passes requests to a daemon until `signal` aborts. */
  attach(operations: DaemonOperations, signal: AbortSignal): void;
}

type AnyOperation = (request: unknown, context: OperationContext<unknown>) => Promise<unknown>;

/** Opens a bridge without a daemon, for a program that ends when `signal` aborts. */
export function openDaemonBridge(signal: AbortSignal): DaemonBridge {
  const stopping = new AbortController();
  signal.addEventListener("abort", () => stopping.abort(noDaemon()), { once: true });
  let current: { readonly operations: DaemonOperations; readonly signal: AbortSignal } | undefined;
  const run = async (
    name: DaemonOperation,
    request: unknown,
    context: OperationContext<unknown>,
  ): Promise<unknown> => {
    if (current === undefined || current.signal.aborted) throw noDaemon();
    // The table pairs each operation with its request.
    const operation = current.operations[name] as AnyOperation;
    const ended = current.signal;
    const answer = await operation(request, {
      ...context,
      signal: AbortSignal.any([context.signal, ended]),
    });
    // An operation does not distinguish its end from an interruption by the stop.
    if (ended.aborted && !restarts(name)) throw noDaemon();
    return answer;
  };
  const operations = Object.keys(DAEMON_API).map((name): [string, AnyOperation] => [
    name,
    (request, context) => run(name as DaemonOperation, request, context), // a key of the table
  ]);
  return {
    operations: Object.fromEntries(operations) as DaemonOperations,
    stopping: stopping.signal,
    attach: (given, ended) => {
      current = { operations: given, signal: ended };
    },
  };
}

function noDaemon(): KbsyncError {
  return new KbsyncError("the daemon is starting or stopping", { code: "daemon_stopping", retryable: true });
}
