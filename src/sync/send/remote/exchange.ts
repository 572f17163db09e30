import type { Dispatcher } from "undici";
import type { RawAnswer } from "./answer.ts";

/** A request as the connection pool takes it. */
export type ExchangeRequest = Pick<Dispatcher.DispatchOptions, "method" | "path" | "headers" | "body">;

/** Longest answer that is buffered. The answer to a create holds the sent text; lists are parsed as a stream. */
const ANSWER_BYTES_MAX = 64 * 1024 * 1024;

/**
 * Sends one request and resolves with the whole answer. Rejects with the signal's reason, or with the error of the
 * connection or of the request's body. Uses a dispatch handler instead of undici's `request`, which creates a stream per
 * answer and adds two listeners to the signal: for answers of a few hundred bytes that is half of all the work.
 */
export function exchange(
  connections: Dispatcher,
  request: ExchangeRequest,
  signal: AbortSignal,
): Promise<RawAnswer> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) {
      reject(abortReason(signal));
      return;
    }
    connections.dispatch(request, new Exchange(signal, resolve, reject));
  });
}

/** A request in flight. Registers itself with its signal. */
class Exchange implements Dispatcher.DispatchHandler {
  readonly #signal: AbortSignal;
  readonly #inFlight: Set<Exchange>;
  readonly #resolve: (answer: RawAnswer) => void;
  readonly #reject: (reason: unknown) => void;
  #controller: Dispatcher.DispatchController | undefined;
  #status = 0;
  #headers: RawAnswer["headers"] = {};
  #pieces: Buffer[] = [];
  #bytes = 0;

  constructor(signal: AbortSignal, resolve: (answer: RawAnswer) => void, reject: (reason: unknown) => void) {
    this.#signal = signal;
    this.#inFlight = inFlightOf(signal);
    this.#resolve = resolve;
    this.#reject = reject;
    this.#inFlight.add(this);
  }

  /** Ends the request. One that still waits for a connection is cut off when it gets one. */
  abort(): void {
    const reason = abortReason(this.#signal);
    this.#reject(reason);
    this.#controller?.abort(reason);
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#signal.aborted) controller.abort(abortReason(this.#signal));
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    status: number,
    headers: RawAnswer["headers"],
  ): void {
    // A final answer follows an interim one (1xx).
    this.#status = status;
    this.#headers = headers;
  }

  onResponseData(controller: Dispatcher.DispatchController, piece: Buffer): void {
    this.#bytes += piece.length;
    if (this.#bytes > ANSWER_BYTES_MAX)
      controller.abort(new Error(`the answer is longer than ${ANSWER_BYTES_MAX} bytes`));
    else this.#pieces.push(piece);
  }

  onResponseEnd(): void {
    this.#inFlight.delete(this);
    const [only] = this.#pieces;
    const text = (
      this.#pieces.length === 1 && only !== undefined ? only : Buffer.concat(this.#pieces)
    ).toString("utf8");
    this.#resolve({ status: this.#status, headers: this.#headers, text });
  }

  onResponseError(_controller: Dispatcher.DispatchController | null, error: Error): void {
    this.#inFlight.delete(this);
    this.#reject(error);
  }
}

const bySignal = new WeakMap<AbortSignal, Set<Exchange>>();

/**
 * Returns the requests in flight of a signal. They share one listener, because adding one takes time linear in their
 * number.
 */
function inFlightOf(signal: AbortSignal): Set<Exchange> {
  const known = bySignal.get(signal);
  if (known !== undefined) return known;
  const fresh = new Set<Exchange>();
  bySignal.set(signal, fresh);
  signal.addEventListener("abort", () => {
    for (const one of fresh) one.abort();
  });
  return fresh;
}

function abortReason(signal: AbortSignal): Error {
  const reason: unknown = signal.reason;
  return reason instanceof Error ? reason : new Error(String(reason));
}
