import { type Fifo, openFifo } from "../../lib/fifo.ts";
import type { LimitState } from "../../wire/daemon-status.ts";

/** `content` carries a document. Lists, reads, deletes and changes of a title are `control`. */
export type RequestKind = "content" | "control";

/** The configured number of requests per minute, over all sources. */
export interface RequestLimit {
  /** Returns 0 if a request may leave now, which then counts; else the time to wait before asking again, in milliseconds. */
  admit(kind: RequestKind): number;
  /** Resolves when `admit` may succeed, at the latest after `ms`, and when the signal aborts. */
  wait(ms: number, signal: AbortSignal): Promise<void>;
  /** Ends all waits. */
  wake(): void;
  /** Undefined: there is no limit. */
  state(): LimitState | undefined;
}

const MINUTE_MS = 60_000;
/** Share of the requests per minute that only one kind may use, so that neither waits for all of the other. */
const RESERVE_SHARE = 0.1;

/** Opens the limit. Undefined: nothing waits. `elapsed` is a monotonic clock. */
export function openRequestLimit(
  requestsPerMinute: number | undefined,
  elapsed = (): number => performance.now(),
): RequestLimit {
  if (requestsPerMinute === undefined)
    return {
      admit: () => 0,
      wait: () => Promise.resolve(),
      wake: () => undefined,
      state: () => undefined,
    };
  /** When the requests of the last minute left. */
  const sent: Readonly<Record<RequestKind, Fifo<number>>> = { content: openFifo(), control: openFifo() };
  const count = (times: Fifo<number>): number => {
    for (let at = times.peek(); at !== undefined && at + MINUTE_MS <= elapsed(); at = times.peek())
      times.shift();
    return times.length();
  };
  const reserve = Math.ceil(requestsPerMinute * RESERVE_SHARE);
  return {
    admit: (kind) => {
      const counts = { content: count(sent.content), control: count(sent.control) };
      const isFull = counts.content + counts.control >= requestsPerMinute;
      if (!isFull && counts[kind] < requestsPerMinute - reserve) {
        sent[kind].push(elapsed());
        return 0;
      }
      const oldest = isFull ? [sent.content.peek(), sent.control.peek()] : [sent[kind].peek()];
      return Math.max(1, Math.min(...oldest.map((at) => at ?? Infinity)) + MINUTE_MS - elapsed());
    },
    ...openWaiters(),
    state: () => ({ kind: "limited", requestsPerMinute }),
  };
}

/** Requests that wait for a limit. */
function openWaiters(): Pick<RequestLimit, "wait" | "wake"> {
  const waiters = new Set<() => void>();
  return {
    wait: (ms, signal) =>
      new Promise((resolve) => {
        const proceed = (): void => {
          clearTimeout(timer);
          signal.removeEventListener("abort", proceed);
          waiters.delete(proceed);
          resolve();
        };
        const timer = setTimeout(proceed, Math.ceil(ms));
        signal.addEventListener("abort", proceed, { once: true });
        waiters.add(proceed);
        if (signal.aborted) proceed();
      }),
    wake: () => {
      for (const proceed of waiters) proceed();
    },
  };
}
