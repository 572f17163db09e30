import { setTimeout as sleep } from "node:timers/promises";
import {
  type Limit,
  limitAt,
  type LimitsConfig,
  WEEK_MINUTES,
  type WallTime,
} from "../../config/schema/limits.ts";
import { type Fifo, openFifo } from "../../lib/fifo.ts";
import type { LimitState } from "../../wire/daemon-status.ts";
import type { ExchangeRequest } from "./exchange.ts";

/** A request that carries a document: `recent` if a person changed it a moment ago, `content` if it is backlog. */
export type ContentKind = "recent" | "content";

/** Lists, reads, deletes and changes of a title are `control`. */
export type RequestKind = ContentKind | "control";

/** A request that may leave. */
export interface Departure {
  /** Returns the request with a body that leaves at the configured rate. */
  pace(request: ExchangeRequest, signal: AbortSignal): ExchangeRequest;
  /** Lets the next document leave. Called at the end of the request, if the whole body did not leave before. */
  end(): void;
}

/**
 * The configured limits, over all sources. Documents leave one at a time, each at the full rate: several that share it
 * would each take longer, and services end requests whose bodies take too long.
 */
export interface Limits {
  /** Returns the longest time to wait before asking again, in milliseconds, if the request must not leave yet. */
  admit(kind: RequestKind): Departure | number;
  /** Resolves when `admit` may succeed, at the latest after `ms`, and when the signal aborts. */
  wait(ms: number, signal: AbortSignal): Promise<void>;
  /** Ends all waits. */
  wake(): void;
  /** The limits that hold now; undefined if there are none. */
  state(): LimitState | undefined;
}

export interface LimitsOptions {
  readonly limits: LimitsConfig | undefined;
  /** Called when a part of a document leaves: slow progress is no hang. */
  readonly onMoved?: () => void;
  /** A monotonic clock. */
  readonly elapsed?: () => number;
  readonly timeOfDay?: () => number;
  /** Default: the machine's local time. */
  readonly wallTime?: (ms: number) => WallTime;
  readonly pause?: (ms: number, signal: AbortSignal) => Promise<void>;
}

const MINUTE_MS = 60_000;
/** Share of the requests per minute that only one kind may use, so that none waits for all of the others. */
const RESERVE_SHARE = 0.1;
/** A body leaves in slices that take this long at the configured rate, within these sizes. */
const SLICE_MS = 250;
const SLICE_BYTES_MIN = 1024;
const SLICE_BYTES_MAX = 64 * 1024;
/** Time that late timers may catch up on, which bounds what leaves at once. */
const CATCH_UP_MS = 100;

const UNPACED: Departure = { pace: (request) => request, end: () => undefined };

/** Opens the limits. Without a configuration nothing waits. */
export function openLimits({
  limits,
  onMoved = () => undefined,
  elapsed = () => performance.now(),
  timeOfDay = () => Date.now(),
  wallTime = localTime,
  pause = async (ms, signal) => sleep(ms, undefined, { signal }),
}: LimitsOptions): Limits {
  if (limits === undefined)
    return {
      admit: () => UNPACED,
      wait: () => Promise.resolve(),
      wake: () => undefined,
      state: () => undefined,
    };
  const waiters = openWaiters();
  const counts = [limits, ...limits.timetable].some((one) => one.requestsPerMinute !== undefined);
  const requests = openRequestCount(elapsed);
  const current = (): Limit => limitAt(limits, wallTime(timeOfDay()));
  const nextChangeMs = onceAMinute((ms) => changeMs(limits, ms, wallTime));
  const nextMinuteMs = (): number => MINUTE_MS - (timeOfDay() % MINUTE_MS);
  /** Whether the body of a document is leaving. */
  let isBusy = false;
  /** When the next slice may leave. */
  let freeMs = -Infinity;
  /** The last rate at which documents might leave. A document that is leaving when a pause begins is sent to its end. */
  let rate = Infinity;

  const takeSlice = async (bytes: number, signal: AbortSignal): Promise<void> => {
    const waitMs = freeMs - elapsed();
    if (waitMs > 0) await pause(waitMs, signal);
    rate = current().uploadRate || rate;
    freeMs = Math.max(freeMs, elapsed() - CATCH_UP_MS) + (1000 * bytes) / rate;
    onMoved();
  };
  const depart = (): Departure => {
    let hasEnded = false;
    isBusy = true;
    const end = (): void => {
      if (hasEnded) return;
      hasEnded = true;
      isBusy = false;
      waiters.wake();
    };
    return {
      end,
      pace: (request, signal) =>
        paced(
          request,
          () => rate,
          (bytes) => takeSlice(bytes, signal),
          end,
        ),
    };
  };

  return {
    admit: (kind) => {
      const limit = current();
      const requestMs = requests.waitMs(kind, limit.requestsPerMinute);
      if (requestMs > 0) return Math.min(requestMs, nextMinuteMs());
      if (kind !== "control") {
        if (limit.uploadRate === 0 || isBusy) return nextMinuteMs();
        if (limit.uploadRate !== Infinity && freeMs > elapsed())
          return Math.min(freeMs - elapsed(), nextMinuteMs());
        rate = limit.uploadRate;
      }
      if (counts) requests.add(kind);
      return kind === "control" || rate === Infinity ? UNPACED : depart();
    },
    wait: waiters.wait,
    wake: waiters.wake,
    state: () => {
      const { uploadRate, requestsPerMinute } = current();
      if (uploadRate === Infinity && requestsPerMinute === Infinity) return undefined;
      return {
        kind: "limited",
        ...(uploadRate !== Infinity && { uploadRate }),
        ...(requestsPerMinute !== Infinity && { requestsPerMinute }),
        untilMs: nextChangeMs(timeOfDay()),
      };
    },
  };
}

function localTime(ms: number): WallTime {
  const date = new Date(ms);
  return { day: date.getDay(), minute: date.getHours() * 60 + date.getMinutes() };
}

/** Returns the last result for the same minute: progress bars ask ten times a second. */
function onceAMinute<T>(find: (ms: number) => T): (ms: number) => T {
  let last: { readonly minute: number; readonly found: T } | undefined;
  return (ms) => {
    const minute = Math.floor(ms / MINUTE_MS);
    if (last?.minute !== minute) last = { minute, found: find(ms) };
    return last.found;
  };
}

/** When other limits hold than now; undefined if the same hold all week. Tests each minute, so it accounts for clock changes. */
function changeMs(
  limits: LimitsConfig,
  nowMs: number,
  wallTime: (ms: number) => WallTime,
): number | undefined {
  if (limits.timetable.length === 0) return undefined;
  const now = limitAt(limits, wallTime(nowMs));
  const startMs = nowMs - (nowMs % MINUTE_MS);
  for (let minutes = 1; minutes <= WEEK_MINUTES; minutes += 1) {
    const ms = startMs + minutes * MINUTE_MS;
    const then = limitAt(limits, wallTime(ms));
    if (then.uploadRate !== now.uploadRate || then.requestsPerMinute !== now.requestsPerMinute) return ms;
  }
  return undefined;
}

/** Replaces the body by one whose slices wait for their turn. `onSent` is called when all have left, or none will. */
function paced(
  request: ExchangeRequest,
  rate: () => number,
  takeSlice: (bytes: number) => Promise<void>,
  onSent: () => void,
): ExchangeRequest {
  const { body } = request;
  const whole = typeof body === "string" ? Buffer.from(body) : body;
  // The body of a document's request: bytes, or those of a file as they are read.
  const pieces = whole instanceof Uint8Array ? [whole] : (whole as unknown as AsyncIterable<Uint8Array>);
  const stream = async function* (): AsyncGenerator<Uint8Array, void, undefined> {
    try {
      for await (const piece of pieces) {
        for (let at = 0; at < piece.length;) {
          const wish = Math.floor((rate() * SLICE_MS) / 1000);
          const slice = piece.subarray(at, at + Math.min(SLICE_BYTES_MAX, Math.max(SLICE_BYTES_MIN, wish)));
          await takeSlice(slice.length);
          at += slice.length;
          yield slice;
        }
      }
    } finally {
      onSent();
    }
  };
  const length = whole instanceof Uint8Array && { "content-length": String(whole.length) };
  // Headers of requests here are records. The pool accepts any iterable as a body; its types allow streams only.
  return { ...request, headers: { ...(request.headers as object), ...length }, body: stream() as never };
}

/** Counts the requests of the last minute. */
function openRequestCount(elapsed: () => number): {
  readonly add: (kind: RequestKind) => void;
  /** How long a request of this kind has to wait; 0: not at all. */
  readonly waitMs: (kind: RequestKind, perMinute: number) => number;
} {
  const sent: Readonly<Record<RequestKind, Fifo<number>>> = {
    recent: openFifo(),
    content: openFifo(),
    control: openFifo(),
  };
  const forget = (times: Fifo<number>): number => {
    for (let at = times.peek(); at !== undefined && at + MINUTE_MS <= elapsed(); at = times.peek())
      times.shift();
    return times.length();
  };
  return {
    add: (kind) => sent[kind].push(elapsed()),
    waitMs: (kind, perMinute) => {
      const counts = {
        recent: forget(sent.recent),
        content: forget(sent.content),
        control: forget(sent.control),
      };
      if (perMinute === Infinity) return 0;
      const reserve = Math.ceil(perMinute * RESERVE_SHARE);
      let taken = counts.recent + counts.content + counts.control;
      for (const other of ["recent", "content", "control"] as const)
        if (other !== kind) taken += Math.max(0, reserve - counts[other]);
      if (taken < perMinute) return 0;
      const oldest = Object.values(sent).map((times) => times.peek() ?? Infinity);
      return Math.max(1, Math.min(...oldest) + MINUTE_MS - elapsed());
    },
  };
}

/** Requests that wait for a limit. */
function openWaiters(): Pick<Limits, "wait" | "wake"> {
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
